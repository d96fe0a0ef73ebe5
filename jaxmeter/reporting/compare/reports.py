"""Reports that a release of jax changed a program's time, and what two runs of two releases say of each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from jaxmeter.harness.metrics.reading import Run, Variant
from jaxmeter.harness.metrics.statistics import Interval
from jaxmeter.harness.record.cases import Reported

from .claims import ClaimJudgement, ClaimVerdict, judge_ratio
from .ratios import divide_readings
from .verdicts import TIME, Change, Here, JudgedReport

PACKAGE = "jax"

_RELEASE = re.compile(r"\d+(?:\.\d+)*")


_BY_VERDICT = {
    ClaimVerdict.AS_PUBLISHED: Here.REPRODUCED,
    ClaimVerdict.LARGER: Here.SAME_DIRECTION,
    ClaimVerdict.SMALLER: Here.SAME_DIRECTION,
    ClaimVerdict.SAME_DIRECTION: Here.SAME_DIRECTION,
    ClaimVerdict.OPPOSITE: Here.OPPOSITE,
    ClaimVerdict.DIFFERS: Here.NOT_HERE,
    ClaimVerdict.UNDECIDED: Here.UNDECIDED,
}


def judge_reports(before: Run, after: Run, changes: Iterable[Change]) -> Iterator[JudgedReport]:
    """Yield the reports of changes between the releases of two runs, in the order of the later run's cases.

    Args:
      found: What was found of both runs; of it the times of calls count.
    """
    times = {change.key: change for change in changes if change.metric == TIME}
    for key, case in after.by_key.items():
        earlier, name = before.by_key.get(key), case.planned.baseline
        old, new = None if earlier is None else earlier.find(name), case.find(name)
        if earlier is None or old is None or new is None:
            continue
        releases = (earlier.environment.packages.get(PACKAGE, ""), case.environment.packages.get(PACKAGE, ""))
        for report in case.planned.reported:
            theirs = _find_factor(report, *releases)
            if theirs is None:
                continue
            change, is_time = times.get((case.planned.name, case.planned.platform, name)), report.metric == TIME
            ours, reason = _read(change) if is_time else _divide(report.metric, old, new)
            judgement = (
                ClaimJudgement(ClaimVerdict.UNDECIDED) if ours is None else judge_ratio(theirs, ours, exact=False)
            )
            yield JudgedReport(
                report=report,
                case=case.planned.name,
                variant=name,
                theirs=theirs,
                ours=ours,
                here=_BY_VERDICT[judgement.verdict],
                condition=change.condition if change is not None and ours is not None and is_time else "",
                reason=reason or judgement.reason.value,
                releases=releases,
            )


def _find_factor(report: Reported, old: str, new: str) -> float | None:
    """Times as long under the new release, as reported; None where the change is not wholly between the two."""
    before, after, older, newer = map(_order, (report.before, report.after, old, new))
    if older and older <= before and after <= newer:
        return report.factor
    return 1 / report.factor if newer and newer <= before and after <= older else None


def _read(change: Change | None) -> tuple[Interval | None, str]:
    """The ratio of a time, and why it is none; one that nothing has confirmed tells no report."""
    if change is None:
        return None, "not timed in both runs"
    if change.effect is None or not change.replayed:
        return None, change.reason or "not timed by both in turns"
    return change.effect, ""


def _divide(metric: str, old: Variant, new: Variant) -> tuple[Interval | None, str]:
    """The ratio of another time, over the processes of both runs."""
    readings = old.read(metric), new.read(metric)
    if not all(reading.has_number for reading in readings):
        return None, "not measured in both runs"
    return divide_readings(readings[1], readings[0], new.settings, two_runs=True), ""


def _order(version: str) -> tuple[int, ...]:
    """What releases are sorted by; empty for what is no version."""
    match = _RELEASE.match(version)
    return () if match is None else tuple(map(int, match[0].split(".")))
