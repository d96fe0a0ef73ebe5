"""What our interval says about the number of somebody else: a published claim, or a report on a release of jax."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from jaxmeter.document import numbers
from jaxmeter.harness.metrics.metric import Reading
from jaxmeter.harness.metrics.reading import Run, Variant
from jaxmeter.harness.metrics.statistics import CONFIDENCE, MINIMUM_EFFECT, Interval, differs
from jaxmeter.harness.record.cases import Reported

from .ratios import divide_readings
from .scaling import NEAR, Scaling
from .verdicts import TIME, Change, Here, JudgedReport

ABOUT_SAME = 1.1
"""A published ratio this near to 1, either way, claims that there is no difference: single calls tell no less."""

LIKE = 1.5
"""A ratio within this factor of a published one, either way, is as published. Chosen: one source's own times of one
function differ by a factor of two to five from cell to cell, so that figures of single calls carry no more."""

_NEAR, _LEAST = numbers.percent(ABOUT_SAME - 1), numbers.percent(MINIMUM_EFFECT)


class ClaimVerdict(StrEnum):
    """What our figures say of a claim."""

    AS_PUBLISHED = "as published"
    LARGER = "same direction, larger"
    SMALLER = "same direction, smaller"
    SAME_DIRECTION = "same direction"
    OPPOSITE = "opposite"
    DIFFERS = "not as published"
    UNDECIDED = "undecided"


class Reason(StrEnum):
    """Why a verdict is none, or what to know of it."""

    NONE = ""
    NO_NUMBER = "the published figure is not a comparable number"
    NO_INTERVAL = "no interval"
    ANY_EXPONENT = f"our {numbers.percent(CONFIDENCE)} interval, by which verdicts go, allows any exponent"
    DIFFER = f"ours differ by more than {_NEAR}"
    DO_NOT_DIFFER = f"ours differ by less than {_NEAR}, too"
    NO_DIFFERENCE = f"ours differ by less than {_NEAR}"
    NEAR_UNSURE = f"our interval reaches beyond a difference of {_NEAR}"
    SIZE_UNSURE = f"our interval reaches across a factor of {LIKE:g} from theirs"
    EQUAL = "equal here"
    INCLUDES_1 = f"our {numbers.percent(CONFIDENCE)} interval, by which verdicts go, includes 1"
    TOO_SMALL = f"below {_LEAST}, the least that is worth a verdict"
    BESIDE_CONSTANT = "with a constant part, our data fit many exponents"
    UNSURE = f"ours lies neither wholly within {NEAR:g} of theirs nor wholly outside"
    UNLIKE_PROCESSES = "ours differs between processes"


@dataclass(frozen=True)
class ClaimJudgement:
    """A verdict with its reason."""

    verdict: ClaimVerdict
    reason: Reason = Reason.NONE


def says_about_the_same(theirs: float) -> bool:
    """Whether a published ratio claims that there is no difference worth a word."""
    return 1 / ABOUT_SAME <= theirs <= ABOUT_SAME


def judge_ratio(theirs: float, ours: Interval, *, exact: bool) -> ClaimJudgement:
    """Whether the same side is the larger one here, and by as much.

    Args:
      theirs: Their ratio, > 0.
      exact: Whether ours is of counts that were the same in all processes: then any difference counts.
    """
    low, high = ours.decisive.low, ours.decisive.high
    if low is None or high is None:
        return ClaimJudgement(ClaimVerdict.UNDECIDED, Reason.NO_INTERVAL)
    is_near = low >= 1 / ABOUT_SAME and high <= ABOUT_SAME
    if says_about_the_same(theirs):
        if low > ABOUT_SAME or high < 1 / ABOUT_SAME:
            return ClaimJudgement(ClaimVerdict.DIFFERS, Reason.DIFFER)
        if is_near:
            return ClaimJudgement(ClaimVerdict.AS_PUBLISHED, Reason.DO_NOT_DIFFER)
        return ClaimJudgement(ClaimVerdict.UNDECIDED, Reason.NEAR_UNSURE)
    if exact and low == high == 1:
        return ClaimJudgement(ClaimVerdict.DIFFERS, Reason.EQUAL)
    # How large our effect is over theirs, in their direction: below 1 it is smaller, or the opposite one.
    least, most = (low / theirs, high / theirs) if theirs > 1 else (theirs / high, theirs / low)
    includes_1 = low <= 1 <= high
    if includes_1 or not (exact or differs(ours)):
        if is_near and most < 1 / LIKE:
            return ClaimJudgement(ClaimVerdict.DIFFERS, Reason.NO_DIFFERENCE)
        return ClaimJudgement(ClaimVerdict.UNDECIDED, Reason.INCLUDES_1 if includes_1 else Reason.TOO_SMALL)
    if (low > 1) != (theirs > 1):
        return ClaimJudgement(ClaimVerdict.OPPOSITE)
    return _judge_size(least, most)


def _judge_size(least: float, most: float) -> ClaimJudgement:
    if most < 1 / LIKE:
        return ClaimJudgement(ClaimVerdict.SMALLER)
    if least > LIKE:
        return ClaimJudgement(ClaimVerdict.LARGER)
    if least >= 1 / LIKE and most <= LIKE:
        return ClaimJudgement(ClaimVerdict.AS_PUBLISHED)
    return ClaimJudgement(ClaimVerdict.SAME_DIRECTION, Reason.SIZE_UNSURE)


def judge_count(theirs: float | None, ours: Reading) -> ClaimJudgement:
    """Whether ours is equal, and the same in all processes; a number that nothing can have counted is never equal."""
    if not ours.exact:
        return ClaimJudgement(ClaimVerdict.UNDECIDED, Reason.UNLIKE_PROCESSES)
    return ClaimJudgement(ClaimVerdict.AS_PUBLISHED if ours.known[0] == theirs else ClaimVerdict.DIFFERS)


def judge_exponent(theirs: float | None, ours: Scaling) -> ClaimJudgement:
    """Whether ours lies within NEAR of theirs with its whole interval, or outside with it.

    So a vague exponent of ours decides nothing. Of too few sizes for an interval, all exponents between neighbouring
    sizes must lie within; or all outside, on the same side.
    """
    sure = [interval.decisive for interval in ours.bounded]
    bounds = [
        (interval.low, interval.high) for interval in sure if interval.low is not None and interval.high is not None
    ]
    if not bounds:
        return ClaimJudgement(ClaimVerdict.UNDECIDED, Reason.ANY_EXPONENT if ours.bounded else Reason.NO_INTERVAL)
    if ours.is_lost_beside_constant:
        return ClaimJudgement(ClaimVerdict.UNDECIDED, Reason.BESIDE_CONSTANT)
    if theirs is None:
        return ClaimJudgement(ClaimVerdict.UNDECIDED, Reason.NO_NUMBER)
    least, most = theirs - NEAR, theirs + NEAR
    if all(least <= low and high <= most for low, high in bounds):
        return ClaimJudgement(ClaimVerdict.AS_PUBLISHED)
    if all(high < least for _, high in bounds) or all(low > most for low, _ in bounds):
        return ClaimJudgement(ClaimVerdict.DIFFERS)
    return ClaimJudgement(ClaimVerdict.UNDECIDED, Reason.UNSURE)


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
      changes: What changed between both runs; of it the times of calls count.
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
    """Return the ratio of a time, or why there is none: only a confirmed ratio judges a report."""
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
