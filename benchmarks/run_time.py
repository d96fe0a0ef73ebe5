"""The time of each stage of a run, and what the run can detect: `python -m benchmarks.run_time [--quick | --full]`.

The benchmark makes a run in this process, and times each stage by the heartbeats of the run's processes. It prints a
table of the seconds by kind of process and stage, the share of samples, and the number of processes of each case. The
half-widths of the ratios follow, and how much a pass and a process scatter. `--read RUN` prints the figures of an
existing run, without the stages. The parent reads heartbeats every 50 ms. The time of a shorter stage counts for the
stage before it.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy

from benchmarks.here import describe_here
from benchmarks.two_runs import describe_widths, index_variants
from jaxmeter.cli.request import RunRequest
from jaxmeter.cli.run import new_run
from jaxmeter.harness.metrics.precision import list_smallest
from jaxmeter.harness.metrics.reading import read_process
from jaxmeter.harness.metrics.statistics import FEWEST_PROCESSES, find_block_time
from jaxmeter.harness.parent.progress import Watcher
from jaxmeter.harness.plan.messages import Heartbeat
from jaxmeter.harness.plan.processes import PlannedProcess
from jaxmeter.harness.record import PlannedCase, ProcessRecord, RunFolder, RunRecord, make_run_id, read_run

LEAST_SHOWN_S = 0.5
FEWEST_PASSES, RESAMPLES = 12, 200
BETWEEN = "between processes"


class Stages(Watcher):
    """Seconds by kind of process and stage."""

    def __init__(self) -> None:
        self.taken_s: Counter[tuple[str, str]] = Counter()
        self._at, self._since = (BETWEEN, ""), time.monotonic()

    def process_started(self, process: PlannedProcess) -> None:
        """Count the time between two processes."""
        self._begin(process.kind, "start")

    def beat(self, heartbeat: Heartbeat) -> None:
        """Count the stage that ends."""
        self._begin(self._at[0], heartbeat.stage)

    def process_ended(self, process: PlannedProcess, used_s: float) -> None:
        """Count the last stage of a process."""
        self._begin(BETWEEN, "")

    def said(self, text: str) -> None:
        """Print the text."""
        print(text, flush=True)

    def _begin(self, kind: str, stage: str) -> None:
        now = time.monotonic()
        self.taken_s[self._at] += now - self._since
        self._at, self._since = (kind, stage), now


def main() -> None:
    """Measure or read a run, and print where its time went and what it can detect."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    level = parser.add_mutually_exclusive_group()
    level.add_argument("--quick", action="store_const", dest="level", const="quick", default="default")
    level.add_argument("--full", action="store_const", dest="level", const="full")
    parser.add_argument("--select", action="append", default=[])
    parser.add_argument("--suites", action="append", default=[])
    parser.add_argument("--budget")
    parser.add_argument("--out", type=Path, help="keep the run in this folder")
    parser.add_argument("--read", type=Path, metavar="RUN")
    given = parser.parse_args()
    print(describe_here("jax", "jaxlib"))
    if given.read is not None:
        print("\n".join(describe(given.read, None)))
        return
    with TemporaryDirectory() as scratch:
        out, run_id = given.out or Path(scratch), make_run_id("cpu")
        request = RunRequest(
            level=given.level,
            select=tuple(given.select),
            suites=tuple(given.suites),
            budget=given.budget,
            out=out,
            run_id=run_id,
        )
        stages, begun_s = Stages(), time.monotonic()
        new_run(request, stages, as_json=False)
        wall_s = time.monotonic() - begun_s
        print("\n".join([*describe_stages(stages.taken_s, wall_s), *describe(out / run_id, wall_s)]))


def describe_stages(taken_s: Counter[tuple[str, str]], wall_s: float) -> Iterator[str]:
    """Yield a line for each kind of process, and a line for each of its longer stages."""
    of_kind: Counter[str] = Counter()
    for (kind, _), seconds in taken_s.items():
        of_kind[kind] += seconds
    for kind, seconds in of_kind.most_common():
        yield f"{kind:24} {seconds:7.1f} s  {100 * seconds / wall_s:3.0f} %"
        for (of, stage), part_s in taken_s.most_common():
            if of == kind and stage and part_s >= LEAST_SHOWN_S:
                yield f"    {stage:20} {part_s:7.1f} s"


def describe(path: Path, wall_s: float | None) -> Iterator[str]:
    """Yield the share of samples, the number of processes, the half-widths and the scatter of a run."""
    run = read_run(RunFolder(path))
    records = list(read_records(run, RunFolder(path)))
    samples_s, spent_s = sum_samples_s(records), math.fsum(record.elapsed_s for record in records)
    wall_s = spent_s if wall_s is None else wall_s
    yield f"samples {samples_s:.1f} of {wall_s:.1f} s: {100 * samples_s / wall_s:.0f} %"
    counts = Counter(case.processes for case in run.cases)
    yield "processes per case (number of cases): " + ", ".join(f"{n} ({counts[n]})" for n in sorted(counts))
    variants = list(index_variants(run).values())
    ratios = [variant.read("speedup") for variant in variants if not variant.is_baseline]
    shown = [ratio.interval.half_width for ratio in ratios if ratio.interval is not None]
    yield f"half-width of speedups at 95 %: {describe_widths(list(_known(shown)))}"
    yield f"smallest detectable difference: {describe_widths(list(list_smallest(variants)))}"
    logs = [list(map(math.log, known)) for ratio in ratios if len(known := ratio.known) > 2 and min(known) > 0]
    if logs:
        yield f"standard deviation between processes: {describe_widths([statistics.stdev(values) for values in logs])}"
    yield from describe_scatter(run, records)
    yield from describe_machine(records)


def describe_machine(records: Iterable[ProcessRecord]) -> Iterator[str]:
    """Yield how much each calibration loop scatters within a process: the machine itself, without any program."""
    deviations: dict[str, list[float]] = {}
    for record in records:
        for loop in record.calibrations:
            if len(loop.samples_s) >= FEWEST_PASSES:
                deviations.setdefault(loop.name, []).append(statistics.stdev(map(math.log, loop.samples_s)))
    for name, values in sorted(deviations.items()):
        yield f"standard deviation of the loop {name} in a process: {100 * statistics.median(values):.1f} % (median)"


def _known(values: Iterable[float | None]) -> Iterator[float]:
    return (value for value in values if value is not None)


def describe_scatter(run: RunRecord, records: Sequence[ProcessRecord]) -> Iterator[str]:
    """Yield the standard deviation of a single pass, and the additional standard deviation between processes: medians.

    The first is the standard deviation of the median of n passes, times the square root of n.
    """
    of_pass, of_process = [], []
    draws = numpy.random.default_rng(0)
    for case in run.manifest.cases:
        for logs in list_pass_ratios(case, records).values():
            if len(logs) < FEWEST_PROCESSES or min(map(len, logs)) < FEWEST_PASSES:
                continue
            resampled = [numpy.median(draws.choice(own, (RESAMPLES, len(own))), axis=1).std() for own in logs]
            beyond = statistics.variance([float(numpy.median(own)) for own in logs]) - statistics.mean(
                [deviation**2 for deviation in resampled]
            )
            of_pass.append(
                statistics.mean(
                    [deviation * math.sqrt(len(own)) for deviation, own in zip(resampled, logs, strict=True)]
                )
            )
            of_process.append(math.sqrt(max(0.0, beyond)))
    if of_pass and (between := statistics.median(of_process)) > 0:
        within = statistics.median(of_pass)
        yield (
            f"standard deviation of a pass {100 * within:.0f} %, between processes beyond that {100 * between:.1f} %, "
            f"quotient {within / between:.1f} (medians of {len(of_pass)} ratios)"
        )


def list_pass_ratios(case: PlannedCase, records: Sequence[ProcessRecord]) -> dict[str, list[Any]]:
    """Return the logarithms of each pass's baseline time over the variant's time, by variant and process."""
    ratios: dict[str, list[Any]] = {}
    for record in records:
        blocks = {item.variant: [find_block_time(block.samples_s) for block in item.blocks] for item in record.variants}
        if record.case != case.id or case.baseline not in blocks:
            continue
        base = numpy.array(blocks.pop(case.baseline))
        for name, own in blocks.items():
            ratios.setdefault(name, []).append(numpy.log(base[: len(own)] / numpy.array(own[: len(base)])))
    return ratios


def read_records(run: RunRecord, folder: RunFolder) -> Iterator[ProcessRecord]:
    """Yield the record of every process of the run."""
    planned = {case.id: case for case in run.manifest.cases}
    for case in run.cases:
        for path in folder.case(case.id).processes():
            yield read_process(path, planned[case.id])


def sum_samples_s(records: Iterable[ProcessRecord]) -> float:
    """Return the seconds in samples of blocks."""
    return math.fsum(
        item.calls * math.fsum(sample_s for block in item.blocks for sample_s in block.samples_s)
        for record in records
        for item in record.variants
    )


if __name__ == "__main__":
    main()
