"""The numbers of a run for who has just measured: on a terminal where they are few, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.record import CaseRecord, Manifest, PlannedCase, Run, Status
from harness.record.metric import Reading
from harness.record.pooling import gather_pool
from harness.record.reading import find_worst
from harness.record.recorded import RecordedVariant, list_variants
from harness.record.statistics import VERSION, differs

MOST_LINES = 24
"""More numbers are for a page."""

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


def list_results(run: Run) -> list[dict[str, Any]]:
    """By planned variant its status, time and gain over the case's baseline variant, each with its interval.

    Times are seconds. A missing number is null.
    """
    return [
        {
            "case": variant.planned_case.name,
            "variant": variant.planned.name,
            "status": _find_status(variant).value,
            "execution_s": _tell(variant.read("execution_s")),
            "speedup": _tell(variant.read("speedup")),
        }
        for variant in _list_variants(run)
    ]


def describe_results(run: Run) -> Iterator[str]:
    """The same, a line for each variant; nothing where there are too many."""
    if sum(len(case.variants) for case in run.manifest.cases) > MOST_LINES:
        return
    variants = list(_list_variants(run))
    notes = {record.id: record.notes for record in run.cases}
    width = max((len(variant.planned.name) for variant in variants), default=0)
    told = ""
    for variant in variants:
        if variant.planned_case.name != told:
            told = variant.planned_case.name
            yield told
            yield from (f"  note: {note}" for note in notes.get(variant.planned_case.id, ()))
        yield f"  {variant.planned.name:{width}}  {_describe(variant)}"


def _list_variants(run: Run) -> Iterator[RecordedVariant]:
    pool = gather_pool(run)
    manifest, records = run.manifest, {record.id: record for record in run.cases}
    for planned in manifest.cases:
        record = records.get(planned.id) or _make_empty(planned, manifest)
        yield from list_variants(planned, record, manifest.environment, manifest.settings, pool)


def _make_empty(planned: PlannedCase, manifest: Manifest) -> CaseRecord:
    """Of a case that the run did not reach."""
    return CaseRecord(
        id=planned.id,
        name=planned.name,
        started=manifest.started,
        elapsed_s=0.0,
        launches=0,
        variants=(),
        statistics_version=VERSION,
    )


def _find_status(variant: RecordedVariant) -> Status:
    if variant.planned.skip is not None:
        return Status.SKIPPED
    return find_worst(variant.outcomes)[1].status if variant.outcomes else Status.LOST


def _tell(reading: Reading) -> dict[str, Any] | None:
    interval = reading.interval
    if interval is None:
        return None
    return {
        "value": interval.estimate,
        "low": interval.low,
        "high": interval.high,
        "launches": interval.count,
        "contended": reading.contended,
    }


def _describe(variant: RecordedVariant) -> str:
    """`2.31 ms [2.2, 2.4]  3.1x [3.0, 3.2]`, or how it ended."""
    time = variant.read("execution_s")
    if time.interval is None:
        worst = find_worst(variant.outcomes)[1] if variant.outcomes else None
        reason = variant.planned.skip or (None if worst is None else worst.reason)
        return f"{_find_status(variant).value}{': ' if reason else ''}{reason or ''}"
    size, unit = next((one for one in _UNITS if _rounded(time.interval.estimate / one[0]) >= 1), _UNITS[-1])
    return f"{_write(time, 1 / size, f' {unit}'):26}  {_describe_gain(variant)}".rstrip()


def _rounded(value: float) -> float:
    """As it is written."""
    return float(f"{value:.3g}")


def _describe_gain(variant: RecordedVariant) -> str:
    if variant.planned.name == variant.planned_case.baseline:
        return "baseline"
    gain = variant.read("speedup")
    if gain.interval is None:
        return ""
    undecided = "" if gain.interval.low is None or differs(gain.interval) else ", no difference told"
    return f"{_write(gain, 1.0, 'x')}{undecided}"


def _write(reading: Reading, scale: float, unit: str) -> str:
    """The number with its bounds, marked where it is not to be trusted."""
    interval = reading.interval
    assert interval is not None
    bounds = ""
    if interval.low is not None and interval.high is not None:
        bounds = f" [{interval.low * scale:.3g}, {interval.high * scale:.3g}]"
    return f"{'! ' if reading.contended else ''}{interval.estimate * scale:.3g}{unit}{bounds}"
