"""Our own false-alarm rate, and what we miss, while something else uses a core.

    python -m benchmarks.false_alarms [--cases 300] [--budget 100m] [--cores N]

Each case has one function declared twice. Beside it, in the same processes, stands one that works on 5 % more rows; in
every third case one that runs on two threads where the two run on one, or the reverse. It is a default run, so the
harness decides on the number of processes within the budget. "Differs" is what its own interval of verdicts says. With
`--cores 1` all run on one core, and none is unequally parallel.
"""

from __future__ import annotations

import argparse
import math
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.here import describe_here
from benchmarks.two_runs import Variants, find_verdict_interval, is_doubted, read_variants
from benchmarks.verdicts import write_rate
from jaxmeter.harness.metrics.metric import Reading
from jaxmeter.harness.metrics.statistics import MINIMUM_EFFECT, differs

CASES = 300
BUDGET = "100m"
SUITE = Path(__file__).parent / "same_twice.py"
BUSY = "while True: pass"
INCOMPLETE = 3
"""What a run exits with that its budget has cut; what it has is read all the same."""

KINDS = (
    ("same function", "twice", "same:jit"),
    ("same function, an unequally parallel one beside it", "unequal", "same:jit"),
    ("5 % more work", "twice", "slower:jit"),
)
"""What is counted: a title, and the workload and variant that are held against the first one."""


def main() -> None:
    """Prints the rates with their bounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=CASES)
    parser.add_argument("--budget", default=BUDGET)
    parser.add_argument("--cores", help="as of `run`; all by default")
    given = parser.parse_args()
    cores = () if given.cores is None else ("--cores", given.cores)
    print(f"beside a process that uses a core; {describe_here('jax', 'numpy')}", flush=True)
    load = subprocess.Popen([sys.executable, "-c", BUSY])
    try:
        with tempfile.TemporaryDirectory() as folder:
            variants = measure(given.cases, Path(folder), "--budget", given.budget, *cores)
    finally:
        load.kill()
        load.wait()
    by_title = {title: list_readings(variants, workload, name) for title, workload, name in KINDS}
    by_title["same function, all"] = [reading for title in list(by_title)[:2] for reading in by_title[title]]
    for title, readings in by_title.items():
        print(f"{title}: {describe_readings(readings)}")


def measure(cases: int, folder: Path, *options: str) -> Variants:
    """A default run of so many cases; every third is of the unequally parallel."""
    names = [f"{'unequal' if number % 3 == 2 else 'twice'}[number={number}]" for number in range(cases)]
    selection = [word for name in names for word in ("--select", name)]
    command = [sys.executable, "-m", "jaxmeter", "run", "--suites", str(SUITE), "--out", str(folder), "--run-id", "aa"]
    ended = subprocess.run([*command, "--probe", "timing", *options, *selection], check=False)
    if ended.returncode not in (0, INCOMPLETE):
        raise SystemExit(f"the run ended with {ended.returncode}")
    return read_variants(folder / "aa")


def list_readings(variants: Variants, workload: str, name: str) -> list[Reading]:
    """The speedups of a variant in every case of a workload that has them."""
    readings = [
        variant.read("speedup")
        for variant in variants.values()
        if (variant.planned_case.workload, variant.planned.name) == (workload, name)
    ]
    return [reading for reading in readings if reading.interval is not None]


def describe_readings(readings: Sequence[Reading]) -> str:
    """How many differ, from how many processes, how far estimates are from 1, and how wide intervals are."""
    intervals = [interval for interval in map(find_verdict_interval, readings) if interval is not None]
    doubted = sum(map(is_doubted, readings))
    if not intervals:
        return "no case was measured"
    processes = [interval.count for interval in intervals]
    off = [abs(math.log(interval.estimate)) for interval in intervals]
    widths = [interval.half_width or math.inf for interval in intervals]
    flagged = sum(map(differs, intervals))
    return (
        f"{write_rate(flagged, len(intervals))} differ, minimum effect {100 * MINIMUM_EFFECT:.0f} %; "
        f"{doubted} doubted; processes median {statistics.median(processes):g}, {min(processes)} to {max(processes)}; "
        f"|estimate - 1| median {100 * statistics.median(off):.2f} %, largest {100 * max(off):.2f} %; "
        f"half width median {100 * statistics.median(widths):.2f} %"
    )


if __name__ == "__main__":
    main()
