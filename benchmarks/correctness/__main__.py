"""Is a correct program ever called wrong, and is a planted fault ever missed? `python -m benchmarks.correctness`.

Each program is checked as a suite does, against float64, and as a notebook does, against its own eager result: its
eager and its jitted form, and the program with planted faults, each of at least 10 times the tolerance. Faults of less
than 10 times what rounding does to a badly conditioned problem are counted apart.

    python -m benchmarks.correctness [--seed SEED] [NAME...]
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from benchmarks.correctness.checking import SEED, Checked, check_program, find_programs
from benchmarks.here import describe_here


def main() -> None:
    """Prints what every program is called, and how many checks failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.correctness")
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs; by default all")
    parser.add_argument("--seed", type=int, default=SEED, help="of the arguments")
    options = parser.parse_args()
    start, names = time.monotonic(), options.names or list(find_programs())
    if unknown := [name for name in names if name not in find_programs()]:
        sys.exit(f"no program {unknown[0]!r}; there are {', '.join(find_programs())}")
    print(describe_here("jax", "numpy", "optax", "flax"), flush=True)
    checked: list[Checked] = []
    # A program at a time on each core: most of it is compiling.
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        for name, mine in zip(names, pool.map(partial(check_program, seed=options.seed), names), strict=True):
            checked += mine
            print(_describe(name, mine), flush=True)
    _summarise(checked, len(names), time.monotonic() - start)
    sys.exit(any(check.is_failed for check in checked))


def _describe(name: str, checked: list[Checked]) -> str:
    words = [
        f"{check.fault or 'correct'}/{check.against}: {check.called}" + f" ({check.effect:.3g})" * bool(check.fault)
        for check in checked
        if check.is_failed
    ]
    verdicts = Counter(check.called for check in checked if not check.fault)
    faults = Counter(check.called for check in checked if check.fault)
    summary = "; ".join(f"{kind} {_write(counts)}" for kind, counts in (("correct", verdicts), ("faults", faults)))
    return f"{name:34} {summary}" + "".join(f"\n    FAILED {word}" for word in words)


def _write(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {called}" for called, count in counts.most_common()) or "none"


def _summarise(checked: list[Checked], programs: int, elapsed_s: float) -> None:
    print(f"\n{programs} programs, {elapsed_s:.0f} s")
    for against in ("float64", "eager"):
        correct = [check for check in checked if not check.fault and check.against == against]
        faults = [check for check in checked if check.fault and check.against == against and not check.is_small]
        small = [check for check in checked if check.is_small and check.against == against]
        print(
            f"against {against}: {len(correct)} correct, {sum(check.is_failed for check in correct)} called wrong "
            f"({_write(Counter(check.called for check in correct))}); {len(faults)} planted, "
            f"{sum(check.is_missed for check in faults)} missed ({_write(Counter(check.called for check in faults))}); "
            f"{len(small)} smaller than 10 times rounding, {sum(check.is_missed for check in small)} of these missed"
        )


if __name__ == "__main__":
    main()
