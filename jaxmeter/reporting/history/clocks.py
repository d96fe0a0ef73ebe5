"""Clocks that went back: runs are put in order by when they began, which is as right as their machine's clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jaxmeter.harness.record import RunRecord

WENT_BACK = "a clock went back, and its place in a series may be wrong"


def find_clock_faults(runs: Iterable[RunRecord]) -> Iterator[str]:
    """A sentence for each run whose times contradict themselves, or those of the run that it was measured against."""
    runs = list(runs)
    began = {run.manifest.run_id: run.manifest.started for run in runs}
    for run in runs:
        manifest = run.manifest
        if run.ended is not None and run.ended < manifest.started:
            yield f"run {manifest.run_id} ended before it began: {WENT_BACK}"
        elif manifest.against is not None and began.get(manifest.against, "") > manifest.started:
            baseline = f"run {manifest.against}, which it was measured against"
            yield f"run {manifest.run_id} began before {baseline}: {WENT_BACK}"
