"""The series of each number over the runs of one machine, in the order of time, as right as its clock."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from jaxmeter.harness.metrics.across import find_timing, is_contended, read_values
from jaxmeter.harness.metrics.moderation import NO_CALIBRATION
from jaxmeter.harness.metrics.plausibility import LONGEST_S, SHORTEST_S, divide_by_calibration
from jaxmeter.harness.metrics.reading import Key, Run, Variant
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.record import Manifest, PlannedCase, RunRecord, Status
from jaxmeter.harness.record.cases import is_same_problem

from ..compare.times import COUNTED
from ..compare.variant_pair import find_fingerprint, read_raw
from ..compare.verdicts import PROGRAM, TIME
from ..trim import EXACT

SERIES = tuple(metric for metric in EXACT if metric not in COUNTED)
"""Exact numbers with change points of their own; counts of a program only explain others."""


@dataclass(frozen=True)
class Point:
    """A number of one run.

    Args:
      index: Of the run among those of its machine.
      value: In the metric's unit; of a program its fingerprint.
    """

    index: int
    variant: Variant
    value: float | str

    @property
    def manifest(self) -> Manifest:
        """Of its run."""
        return self.variant.case.run.manifest


@dataclass(frozen=True)
class Series:
    """A number of one variant, run after run.

    Args:
      case: As the newest run has planned it.
      metric: `execution_s` stands for the normalised time where there is a calibration loop.
      calibration: The identity of what such times are divided by; empty without one.
      contended: How many runs are left out since the time was contended.
    """

    case: PlannedCase
    variant: str
    metric: str
    points: tuple[Point, ...]
    calibration: str = ""
    contended: int = 0


def gather_series(runs: Sequence[Run]) -> tuple[Series, ...]:
    """Every series that at least two runs have.

    Args:
      runs: Those of one machine, from the oldest to the newest, at the reference speed of the first of them
        that has the same calibration loop.
    """
    newest: dict[Key, PlannedCase] = {}
    for run in runs:
        newest |= {key: case.planned for key, case in run.by_key.items()}
    return tuple(series for key, case in newest.items() for series in _list_series(runs, key, case))


def _list_series(runs: Sequence[Run], key: Key, case: PlannedCase) -> Iterator[Series]:
    """Those of a case. What an older run planned under its name with other inputs is another case."""
    same = [
        (index, own)
        for index, run in enumerate(runs)
        if (own := run.by_key.get(key)) is not None and is_same_problem(own.planned, case)
    ]
    for planned in case.variants:
        if planned.replays is not None:
            continue
        measured = [
            (index, variant)
            for index, own in same
            if (variant := own.find(planned.name)) is not None and variant.status is Status.OK
        ]
        yield from _list_times(case, planned.name, measured)
        for metric in (PROGRAM, *SERIES):
            points = tuple(
                Point(index, variant, value)
                for index, variant in measured
                if (value := _read_exact(variant, metric)) is not None
            )
            if len(points) > 1:
                yield Series(case, planned.name, metric, points)


def _list_times(case: PlannedCase, name: str, measured: Sequence[tuple[int, Variant]]) -> Iterator[Series]:
    """A series for each calibration loop: times over one cannot be joined with times over another."""
    clean: dict[str, list[Point]] = {}
    contended: dict[str, int] = {}
    for index, variant in measured:
        reference = variant.pool.reference
        calibration = "" if reference is None else reference.identity
        value = _read_time(variant)
        if value is None:
            continue
        own = clean.setdefault(calibration, [])
        if is_contended(variant.outcomes.get("timing")):
            contended[calibration] = contended.get(calibration, 0) + 1
        else:
            own.append(Point(index, variant, value))
    for calibration, points in clean.items():
        if len(points) > 1:
            yield Series(case, name, TIME, tuple(points), calibration, contended.get(calibration, 0))


def _read_time(variant: Variant) -> float | None:
    """The geometric mean over processes, normalised; None where the run has another calibration loop."""
    reference = variant.pool.reference
    times = read_values(variant, METRICS[TIME])
    if reference is None:
        known = [value for value in times if value is not None] if variant.pool.no_reference == NO_CALIBRATION else []
    else:
        details = find_timing(variant)
        if details is None or details.calibration != reference.identity:
            return None
        ratios, calibrations = (read_values(variant, METRICS[name]) for name in ("over_calibration", "calibration_s"))
        normalised = divide_by_calibration(ratios, times, calibrations)
        known = [ratio * reference.calibration_s for ratio in normalised if ratio is not None]
        known = [value for value in known if SHORTEST_S <= value <= LONGEST_S]
    return math.exp(statistics.fmean(map(math.log, known))) if known and min(known) > 0 else None


def _read_exact(variant: Variant, metric: str) -> float | str | None:
    """A number that all processes of a run agree on, or a fingerprint."""
    if metric == PROGRAM:
        return find_fingerprint(variant)
    known = {value for value in read_raw(variant, metric) if value is not None}
    return float(known.pop()) if len(known) == 1 else None


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
