"""Where does the time of a run go, and what does it see for it? `python -m benchmarks.run_time [--quick | --full]`.

A run in this process, of which every stage is timed by the heartbeats of its processes: a table of the seconds by kind
of process and stage, the share that is samples, the processes of each case, and the half-widths of the ratios. Further
words, such as `--select selu`, choose cases; `--read RUN` tells the same of a run that exists, without the stages.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.here import describe_here
from benchmarks.two_runs import describe_widths, index_variants
from jaxmeter.cli.run import new_run
from jaxmeter.harness.metrics.reread import read_process
from jaxmeter.harness.parent.progress import Watcher
from jaxmeter.harness.plan.messages import Heartbeat
from jaxmeter.harness.plan.processes import PlannedProcess
from jaxmeter.harness.record import RunFolder, RunRecord, make_run_id, read_run
from jaxmeter.harness.request import RunRequest
from jaxmeter.reporting.view.trust import list_smallest

LEAST_SHOWN_S = 0.5
BETWEEN = "between processes"


class Stages(Watcher):
    """Seconds by kind of process and stage."""

    def __init__(self) -> None:
        self.taken_s: Counter[tuple[str, str]] = Counter()
        self._at, self._since = (BETWEEN, ""), time.monotonic()

    def process_started(self, process: PlannedProcess) -> None:
        """Counts what was between two processes."""
        self._begin(process.kind, "start")

    def beat(self, heartbeat: Heartbeat) -> None:
        """Counts a stage."""
        self._begin(self._at[0], heartbeat.stage)

    def process_ended(self, process: PlannedProcess, used_s: float) -> None:
        """Counts the last stage of a process."""
        self._begin(BETWEEN, "")

    def said(self, text: str) -> None:
        """Prints it."""
        print(text, flush=True)

    def _begin(self, kind: str, stage: str) -> None:
        now = time.monotonic()
        self.taken_s[self._at] += now - self._since
        self._at, self._since = (kind, stage), now


def main() -> None:
    """Measures or reads a run, and prints where its time went and what it sees."""
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
            backend="cpu",
            level=given.level,
            select=tuple(given.select),
            suites=tuple(given.suites),
            probes=(),
            processes=None,
            budget=given.budget,
            data=None,
            out=out,
            run_id=run_id,
        )
        stages, begun_s = Stages(), time.monotonic()
        new_run(request, stages, as_json=False)
        wall_s = time.monotonic() - begun_s
        print("\n".join([*describe_stages(stages.taken_s, wall_s), *describe(out / run_id, wall_s)]))


def describe_stages(taken_s: Counter[tuple[str, str]], wall_s: float) -> Iterator[str]:
    """A line for each kind of process, and one for each of its longer stages."""
    of_kind: Counter[str] = Counter()
    for (kind, _), seconds in taken_s.items():
        of_kind[kind] += seconds
    for kind, seconds in of_kind.most_common():
        yield f"{kind:24} {seconds:7.1f} s  {100 * seconds / wall_s:3.0f} %"
        for (of, stage), part_s in taken_s.most_common():
            if of == kind and stage and part_s >= LEAST_SHOWN_S:
                yield f"    {stage:20} {part_s:7.1f} s"


def describe(path: Path, wall_s: float | None) -> Iterator[str]:
    """The samples' share, processes, and widths of a run."""
    run = read_run(RunFolder(path))
    samples_s, spent_s = sum_samples_s(run, RunFolder(path))
    wall_s = spent_s if wall_s is None else wall_s
    yield f"samples {samples_s:.1f} of {wall_s:.1f} s: {100 * samples_s / wall_s:.0f} %"
    counts = Counter(case.processes for case in run.cases)
    yield "processes of a case: " + ", ".join(f"{n} in {counts[n]}" for n in sorted(counts))
    variants = list(index_variants(run).values())
    ratios = [variant.read("speedup") for variant in variants if not variant.is_baseline]
    shown = [one.interval.half_width for one in ratios if one.interval is not None]
    yield f"half-width of speedups at 95 %: {describe_widths(list(_known(shown)))}"
    yield f"smallest detectable difference: {describe_widths(list(list_smallest(variants)))}"
    logs = [list(map(math.log, known)) for one in ratios if len(known := one.known) > 2 and min(known) > 0]
    if logs:
        yield f"standard deviation of processes: {describe_widths([statistics.stdev(values) for values in logs])}"


def _known(values: Iterable[float | None]) -> Iterator[float]:
    return (value for value in values if value is not None)


def sum_samples_s(run: RunRecord, folder: RunFolder) -> tuple[float, float]:
    """Seconds in samples of blocks, and in all processes."""
    samples_s = spent_s = 0.0
    planned = {case.id: case for case in run.manifest.cases}
    for case in run.cases:
        for path in folder.case(case.id).processes():
            record = read_process(path, planned[case.id])
            spent_s += record.elapsed_s
            for item in record.variants:
                samples_s += item.calls * math.fsum(one for block in item.blocks for one in block.samples_s)
    return samples_s, spent_s


if __name__ == "__main__":
    main()
