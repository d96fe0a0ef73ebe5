"""What it is worth to set aside the blocks beside which the core was slow.

    python -m benchmarks.core_speed RUN

Sums up the raw samples of a run that was measured here twice: as jaxmeter does, and without what the canaries beside
the blocks tell. Prints how times scatter from launch to launch, by how many processors a program keeps busy.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec import structs

from benchmarks.here import describe_here
from harness.record import LaunchRecord, Manifest, RunFolder, TimingDetails, read_json, read_run
from harness.record.statistics import FEWEST_LAUNCHES
from harness.record.timing_summary import summarise

BOUNDS = (0.0, 1.02, 1.5, math.inf)
"""Of processors kept busy: one thread; threads that take turns, or work together at times; two threads."""


@dataclass(frozen=True)
class Scatter:
    """Of one variant's times, from launch to launch: standard deviations of their logs.

    Args:
      busy: Processors kept busy.
      every, fast: Of all undisturbed blocks, and of those at the core's full speed.
      slow_share: Of its blocks.
    """

    busy: float
    every: float
    fast: float
    slow_share: float


def main() -> None:
    """Prints the scatter with and without."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, metavar="RUN")
    folder = RunFolder(parser.parse_args().run)
    manifest = read_run(folder).manifest
    print(f"run {manifest.run_id}; read with {describe_here()}")
    found = list(list_scatters(folder, manifest))
    slow = describe_tenths([one.slow_share for one in found])
    print(f"the core was slow beside {slow} of the blocks of a variant (10 / 50 / 90 % of variants)")
    for low, high in zip((BOUNDS[0], *BOUNDS[:-1]), (BOUNDS[-1], *BOUNDS[1:]), strict=True):
        some = [one for one in found if low <= one.busy < high]
        busy = f"{low:g} to {high:g} processors" if (low, high) != (BOUNDS[0], BOUNDS[-1]) else "all"
        print(f"{busy}, {len(some)} variants: standard deviation between launches (10 / 50 / 90 %)")
        print(f"  of all undisturbed blocks {describe_tenths([one.every for one in some])}")
        print(f"  at full speed             {describe_tenths([one.fast for one in some])}")


def list_scatters(folder: RunFolder, manifest: Manifest) -> Iterator[Scatter]:
    """Of every variant whose launches have raw samples."""
    for case in manifest.cases:
        launches = _read_launches(folder, case.id)
        blind = [[_forget_canaries(process) for process in processes] for processes in launches]
        names = dict.fromkeys(item.variant for processes in launches for one in processes for item in one.variants)
        for name in names:
            outcomes = [summarise(some, name, case.baseline) for some in (launches, blind)]
            times = [[one for one in outcome.values["execution_s"] if one is not None] for outcome in outcomes]
            details = outcomes[0].details
            if min(map(len, times)) < FEWEST_LAUNCHES or not isinstance(details, TimingDetails):
                continue
            fast, every = (statistics.stdev(map(math.log, some)) for some in times)
            busy = statistics.median(one for one in outcomes[0].values["parallelism"] if one is not None)
            yield Scatter(busy, every, fast, details.slow_share or 0.0)


def _read_launches(folder: RunFolder, case: str) -> list[list[LaunchRecord]]:
    by_index: dict[int, list[LaunchRecord]] = {}
    for path in folder.case(case).launches():
        one = read_json(path, LaunchRecord)
        by_index.setdefault(one.index, []).append(one)
    return [by_index[index] for index in sorted(by_index)]


def _forget_canaries(process: LaunchRecord) -> LaunchRecord:
    variants = tuple(
        structs.replace(item, blocks=tuple(structs.replace(block, canary_s=None) for block in item.blocks))
        for item in process.variants
    )
    return structs.replace(process, variants=variants)


def describe_tenths(shares: Sequence[float]) -> str:
    """10, 50 and 90 %, in percent."""
    if len(shares) < 2:
        return "too few to say"
    tenths = statistics.quantiles(shares, n=10, method="inclusive")
    return " / ".join(f"{100 * tenths[place]:.1f}" for place in (0, 4, 8)) + " %"


if __name__ == "__main__":
    main()
