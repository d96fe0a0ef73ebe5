"""What follows from two programs alone: compared exactly."""

from __future__ import annotations

from collections.abc import Iterator

from jaxmeter.harness.metrics.metric import Direction, Reading
from jaxmeter.harness.metrics.statistics import Interval
from jaxmeter.harness.metrics.table import METRICS

from .findings import PROGRAM, Change, Finding, make_change
from .variant_pair import VariantPair, read_raw

GATED = tuple(metric.name for metric in METRICS.values() if metric.fails_gate)

COUNTED = tuple(metric.name for metric in METRICS.values() if metric.budget and not metric.fails_gate)
"""What is in a program: it explains how two differ, and fails no gate unless a budget names it."""

EXACT = (*GATED, *COUNTED)
"""Metrics that follow from the program alone, and that two runs are compared by."""


def compare_exact(sides: VariantPair) -> Iterator[Change]:
    """What is not as it was."""
    if sides.has_another_program:
        yield make_change(
            sides.case,
            sides.name,
            PROGRAM,
            Finding.CHANGED,
            reason=sides.describe_program(),
            cause=sides.find_cause(of_program=True),
        )
    is_gone = sides.fingerprints[0] is not None and sides.fingerprints[1] is None
    if is_gone and (gone := _make_gone(sides, PROGRAM, None, "the later run has none")):
        yield gone
    for metric in EXACT:
        # Most are the same, and reading takes longer.
        if read_raw(sides.old, metric) != read_raw(sides.new, metric) and (found := _compare(sides, metric)):
            yield found


def count_exact(sides: VariantPair) -> int:
    """How many exact numbers both runs tell of a variant, its fingerprint among them."""
    told = sum(bool(read_raw(sides.old, metric) and read_raw(sides.new, metric)) for metric in EXACT)
    return told + (None not in sides.fingerprints)


def _compare(sides: VariantPair, metric: str) -> Change | None:
    readings = sides.old.read(metric), sides.new.read(metric)
    was, now_is = (one.estimate for one in readings)
    if was is not None and now_is is None:
        return _make_gone(sides, metric, was, _say_why_gone(readings[1]))
    if was is None or now_is is None or was == now_is:
        return None
    if not all(one.exact for one in readings):
        reason = "it is not the same in all processes"
        return make_change(
            sides.case, sides.name, metric, Finding.INCONCLUSIVE, before=was, after=now_is, reason=reason
        )
    ratio = now_is / was if was > 0 else None
    finding = Finding.MORE if now_is > was else Finding.LESS
    return make_change(
        sides.case,
        sides.name,
        metric,
        Finding.CHANGED if METRICS[metric].direction is Direction.NEITHER else finding,
        before=was,
        after=now_is,
        effect=None if ratio is None else Interval(ratio, ratio, ratio, 1),
        cause=sides.find_cause(of_program=metric in COUNTED),
    )


def _make_gone(sides: VariantPair, metric: str, was: float | None, reason: str) -> Change | None:
    """Return that only the earlier run has an exact number; None beside a run that only confirms times."""
    if sides.runs.after.manifest.confirms:
        return None
    return make_change(sides.case, sides.name, metric, Finding.GONE, before=was, reason=reason)


def _say_why_gone(reading: Reading) -> str:
    fault = reading.fault
    if fault is None or fault.outcome is None:
        return "the later run did not measure it"
    return f"{fault.outcome.status.value}{f': {fault.outcome.reason}' if fault.outcome.reason else ''}"
