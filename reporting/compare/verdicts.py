"""What an interval of ours says of a number that stands beside it. A verdict is on a direction, never on a device."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from harness.record.metric import Reading
from harness.record.statistics import MINIMUM_EFFECT, Interval, differs

from .. import numbers

ABOUT_SAME = 1.1
"""A published ratio this near to 1, either way, claims that there is no difference: single calls tell no less."""

WIDEST_TOLD = 1.0
"""An exponent between bounds further apart tells nothing, such as linear from quadratic."""

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
    TOO_WIDE = f"our interval is wider than {WIDEST_TOLD:g}"
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


def judge_exponent(theirs: float | None, ours: Interval) -> Judgement:
    """Whether theirs lies in our interval, where that is narrow enough to tell anything."""
    ours = ours.decisive
    if ours.low is None or ours.high is None:
        return Judgement(Verdict.INCONCLUSIVE, Reason.NO_INTERVAL)
    if theirs is None:
        return Judgement(Verdict.INCONCLUSIVE, Reason.NO_NUMBER)
    if not tells_exponent(ours):
        return Judgement(Verdict.INCONCLUSIVE, Reason.TOO_WIDE)
    return Judgement(Verdict.HOLDS if ours.low <= theirs <= ours.high else Verdict.FAILS)


def tells_exponent(exponent: Interval) -> bool:
    """Whether the interval is narrow enough to say anything, such as linear rather than quadratic."""
    low, high = exponent.low, exponent.high
    return low is not None and high is not None and high - low <= WIDEST_TOLD
