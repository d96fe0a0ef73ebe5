"""What follows from two programs alone: compared exactly."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

from jaxmeter.harness.metrics.metric import Direction, Reading
from jaxmeter.harness.metrics.reading import Variant
from jaxmeter.harness.metrics.statistics import Interval
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.record import INCOMPLETE

from .variant_pair import VariantPair, find_fingerprint, find_status, read_raw
from .verdicts import PROGRAM, Change, ExactCount, Verdict, make_change

GATED = tuple(metric.name for metric in METRICS.values() if metric.fails_gate)

COUNTED = tuple(metric.name for metric in METRICS.values() if metric.budget and not metric.fails_gate)
"""What is in a program: it explains how two differ, and fails no gate unless a budget names it."""

EXACT = (*GATED, *COUNTED)
"""Metrics that follow from the program alone, and that two runs are compared by."""

KINDS = {
    "planned peak memory": ("planned_peak_bytes",),
    "program": (PROGRAM,),
    "number of compilations": tuple(name for name in GATED if name != "planned_peak_bytes"),
    "counts of the program": COUNTED,
}
"""Exact numbers by what a sentence calls them."""


def compare_exact(sides: VariantPair) -> Iterator[Change]:
    """What is not as it was."""
    if sides.has_another_program:
        yield make_change(
            sides.case,
            sides.name,
            PROGRAM,
            Verdict.CHANGED,
            reason=sides.describe_program(),
            cause=sides.find_cause(of_program=True),
        )
    is_gone = sides.fingerprints[0] is not None and sides.fingerprints[1] is None
    if is_gone and (gone := _make_gone(sides, PROGRAM, None, "the later run has no fingerprint")):
        yield gone
    for metric in EXACT:
        # Most are the same, and reading takes longer.
        if read_raw(sides.old, metric) != read_raw(sides.new, metric) and (found := _compare(sides, metric)):
            yield found


def count_exact(pairs: Sequence[VariantPair], found: Iterable[Change]) -> tuple[ExactCount, ...]:
    """Count the variants whose exact numbers both runs have, by kind of number.

    Args:
      found: What differs between the runs.
    """
    different = {(*one.key, one.metric) for one in found}
    sides = [pair for pair in pairs if all(find_status(one)[0] not in INCOMPLETE for one in (pair.old, pair.new))]
    return tuple(_count(name, metrics, sides, different) for name, metrics in KINDS.items())


def _count(
    name: str, metrics: Sequence[str], pairs: Iterable[VariantPair], different: Container[tuple[str, ...]]
) -> ExactCount:
    numbers = compared = equal = before = after = 0
    for pair in pairs:
        old, new = ({metric for metric in metrics if has_exact(one, metric)} for one in (pair.old, pair.new))
        planned = pair.case.planned
        key = (planned.name, planned.platform, pair.name)
        numbers += len(old & new)
        compared += bool(old & new)
        equal += bool(old & new) and not any((*key, metric) in different for metric in metrics)
        before += bool(old - new)
        after += bool(new - old)
    return ExactCount(name, numbers, compared, equal, before, after)


def has_exact(variant: Variant, metric: str) -> bool:
    """Return whether a variant has a value of an exact metric, or a fingerprint."""
    return find_fingerprint(variant) is not None if metric == PROGRAM else bool(read_raw(variant, metric))


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
            sides.case, sides.name, metric, Verdict.INCONCLUSIVE, before=was, after=now_is, reason=reason
        )
    ratio = now_is / was if was > 0 else None
    return make_change(
        sides.case,
        sides.name,
        metric,
        judge_exact(metric, was, now_is),
        before=was,
        after=now_is,
        effect=None if ratio is None else Interval(ratio, ratio, ratio, 1),
        cause=sides.find_cause(of_program=metric in COUNTED),
    )


def judge_exact(metric: str, before: float | None, after: float | None) -> Verdict:
    """Return what is said of an exact number that has changed; None of both is of a program."""
    if before is None or after is None or METRICS[metric].direction is Direction.NEITHER:
        return Verdict.CHANGED
    return Verdict.MORE if after > before else Verdict.LESS


def _make_gone(sides: VariantPair, metric: str, was: float | None, reason: str) -> Change | None:
    """Return that only the earlier run has an exact number; None for a run that only confirms times."""
    if sides.runs.after.manifest.confirms:
        return None
    return make_change(sides.case, sides.name, metric, Verdict.GONE, before=was, reason=reason)


def _say_why_gone(reading: Reading) -> str:
    fault = reading.fault
    if fault is None or fault.outcome is None:
        return "the later run did not measure it"
    return f"{fault.outcome.status.value}{f': {fault.outcome.reason}' if fault.outcome.reason else ''}"
