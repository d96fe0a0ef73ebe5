"""What an interval of ours says of a number that stands beside it. A verdict is on a direction, never on a device."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from harness.record.metric import Reading
from harness.record.statistics import MINIMUM_EFFECT, Interval, differs

from .. import numbers
from .growth import NEAR, Growth

ABOUT_SAME = 1.1
"""A published ratio this near to 1, either way, claims that there is no difference: single calls tell no less."""

_NEAR, _LEAST = numbers.percent(ABOUT_SAME - 1), numbers.percent(MINIMUM_EFFECT)


class Verdict(StrEnum):
    """What our figures say of a claim."""

    HOLDS = "holds here"
    FAILS = "fails here"
    INCONCLUSIVE = "inconclusive"


class Reason(StrEnum):
    """Why a verdict is none, or what to know of it."""

    NONE = ""
    NO_NUMBER = "theirs is no number that can be compared"
    NO_INTERVAL = "no interval"
    DIFFER = f"ours differ by more than {_NEAR}"
    DO_NOT_DIFFER = f"ours differ by less than {_NEAR}, too"
    NEAR_UNSURE = f"our interval reaches beyond a difference of {_NEAR}"
    EQUAL = "equal here"
    INCLUDES_1 = "our interval includes 1"
    INCLUDES_1_NARROWLY = f"our interval includes 1; any difference is below {_NEAR}"
    TOO_SMALL = f"below {_LEAST}, the least that is worth a verdict"
    BESIDE_CONSTANT = "beside a constant part, ours could be many exponents"
    UNSURE = f"ours lies neither wholly within {NEAR:g} of theirs nor wholly outside"
    UNLIKE_PROCESSES = "ours differs between processes"


@dataclass(frozen=True)
class Judgement:
    """A verdict with its reason."""

    verdict: Verdict
    reason: Reason = Reason.NONE


def says_about_the_same(theirs: float) -> bool:
    """Whether a published ratio claims that there is no difference worth a word."""
    return 1 / ABOUT_SAME <= theirs <= ABOUT_SAME


def judge_ratio(theirs: float, ours: Interval, *, exact: bool) -> Judgement:
    """Whether the same side is the larger one here.

    Args:
      theirs: Their ratio, > 0.
      exact: Whether ours is of counts that were the same in all processes: then any difference counts.
    """
    low, high = ours.decisive.low, ours.decisive.high
    if low is None or high is None:
        return Judgement(Verdict.INCONCLUSIVE, Reason.NO_INTERVAL)
    is_near = low >= 1 / ABOUT_SAME and high <= ABOUT_SAME
    if says_about_the_same(theirs):
        if low > ABOUT_SAME or high < 1 / ABOUT_SAME:
            return Judgement(Verdict.FAILS, Reason.DIFFER)
        if is_near:
            return Judgement(Verdict.HOLDS, Reason.DO_NOT_DIFFER)
        return Judgement(Verdict.INCONCLUSIVE, Reason.NEAR_UNSURE)
    if exact and low == high == 1:
        return Judgement(Verdict.FAILS, Reason.EQUAL)
    if low <= 1 <= high:
        return Judgement(Verdict.INCONCLUSIVE, Reason.INCLUDES_1_NARROWLY if is_near else Reason.INCLUDES_1)
    if not exact and not differs(ours):
        return Judgement(Verdict.INCONCLUSIVE, Reason.TOO_SMALL)
    return Judgement(Verdict.HOLDS if (low > 1) == (theirs > 1) else Verdict.FAILS)


def judge_count(theirs: float | None, ours: Reading) -> Judgement:
    """Whether ours is equal, and the same in all processes; a number that nothing can have counted is never equal."""
    if not ours.exact:
        return Judgement(Verdict.INCONCLUSIVE, Reason.UNLIKE_PROCESSES)
    return Judgement(Verdict.HOLDS if ours.known[0] == theirs else Verdict.FAILS)


def judge_exponent(theirs: float | None, ours: Growth) -> Judgement:
    """Whether ours lies within NEAR of theirs with its whole interval, or outside with it.

    So a vague exponent of ours decides nothing. Of too few sizes for an interval, all exponents between neighbouring
    sizes must lie within; or all outside, on the same side.
    """
    sure = [one.decisive for one in ours.bounded]
    bounds = [(one.low, one.high) for one in sure if one.low is not None and one.high is not None]
    if not bounds:
        return Judgement(Verdict.INCONCLUSIVE, Reason.NO_INTERVAL)
    if ours.is_lost_beside_constant:
        return Judgement(Verdict.INCONCLUSIVE, Reason.BESIDE_CONSTANT)
    if theirs is None:
        return Judgement(Verdict.INCONCLUSIVE, Reason.NO_NUMBER)
    least, most = theirs - NEAR, theirs + NEAR
    if all(least <= low and high <= most for low, high in bounds):
        return Judgement(Verdict.HOLDS)
    if all(high < least for _, high in bounds) or all(low > most for low, _ in bounds):
        return Judgement(Verdict.FAILS)
    return Judgement(Verdict.INCONCLUSIVE, Reason.UNSURE)
