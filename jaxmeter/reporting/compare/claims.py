"""What an interval of ours says of a number that stands beside it. A verdict is on ratios, never on a device."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from jaxmeter.document import numbers
from jaxmeter.harness.metrics.metric import Reading
from jaxmeter.harness.metrics.statistics import CONFIDENCE, MINIMUM_EFFECT, Interval, differs

from .scaling import NEAR, Scaling

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
