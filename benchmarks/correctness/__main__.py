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
    found: list[Checked] = []
    # A program at a time on each core: most of it is compiling.
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        for name, mine in zip(names, pool.map(partial(check_program, seed=options.seed), names), strict=True):
            found += mine
            print(_describe(name, mine), flush=True)
    _summarise(found, len(names), time.monotonic() - start)
    sys.exit(any(one.is_failed for one in found))


def _describe(name: str, checked: list[Checked]) -> str:
    words = [
        f"{one.fault or 'correct'}/{one.against}: {one.called}" + (f" ({one.effect:.3g})" if one.fault else "")
        for one in checked
        if one.is_failed
    ]
    verdicts = Counter(one.called for one in checked if not one.fault)
    faults = Counter(one.called for one in checked if one.fault)
    told = "; ".join(f"{kind} {_write(counts)}" for kind, counts in (("correct", verdicts), ("faults", faults)))
    return f"{name:34} {told}" + "".join(f"\n    FAILED {word}" for word in words)


def _write(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {called}" for called, count in counts.most_common()) or "none"


def _summarise(found: list[Checked], programs: int, elapsed_s: float) -> None:
    print(f"\n{programs} programs, {elapsed_s:.0f} s")
    for against in ("float64", "eager"):
        correct = [one for one in found if not one.fault and one.against == against]
        faults = [one for one in found if one.fault and one.against == against and not one.is_small]
        small = [one for one in found if one.is_small and one.against == against]
        print(
            f"against {against}: {len(correct)} correct, {sum(one.is_failed for one in correct)} called wrong "
            f"({_write(Counter(one.called for one in correct))}); {len(faults)} planted, "
            f"{sum(one.is_missed for one in faults)} missed ({_write(Counter(one.called for one in faults))}); "
            f"{len(small)} smaller than 10 times rounding, {sum(one.is_missed for one in small)} of these missed"
        )


if __name__ == "__main__":
    main()
