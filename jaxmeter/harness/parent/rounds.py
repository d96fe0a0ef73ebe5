"""How many rounds over all cases the time allows, and what is left out where it does not allow the fewest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxmeter.harness.parent.durations import Coming, Pace
from jaxmeter.harness.record import LOCK_STEP, PlannedCase, PlannedVariant
from jaxmeter.harness.record.cases import COMPILATION

TOO_SLOW_S = 1.0
"""Time in a process beyond which an eager variant is too slow. The passes of most variants take 0.1 to 0.3 s of a
process. Leaving one of those out saves almost nothing, and speedups usually refer to eager code."""


@dataclass(frozen=True)
class LeftOut:
    """What the fewest rounds do without, so that they fit into the time that is left.

    Args:
      slow: Case and eager variant that are not timed any more, with the seconds that a process spends on each.
      cold: Processes with a cold process that are not run; their metrics have fewer values, maybe no interval.
    """

    slow: tuple[tuple[PlannedCase, str, float], ...] = ()
    cold: tuple[Coming, ...] = ()


def count_rounds(coming: Sequence[Coming], pace: Pace, left_s: float, *, done: int) -> int:
    """How many rounds there will be: as many as fit whole into the time that is left, and never fewer than the fewest.

    Args:
      coming: The processes of all rounds to come.
      done: Rounds that are whole.
    """
    rounds, needed_s = done, 0.0
    for index in sorted({one.process.round for one in coming if one.process.round >= done}):
        of_round = [one for one in coming if one.process.round == index]
        needed_s += pace.predict_s(of_round)
        if needed_s > left_s and any(one.process.extra for one in of_round):
            break
        rounds = index + 1
    return rounds


def leave_out(fewest: Sequence[Coming], cases: Sequence[PlannedCase], pace: Pace, left_s: float) -> LeftOut:
    """Return what to leave out of the fewest rounds: slow eager variants, then cold processes, the slowest first.

    Cold processes of cases that measure compiling are left out last.

    The exact time of eager code that takes seconds a call is of little use, and it takes the time of all other
    variants. If leaving out all of these is not enough, nothing is left out: the run ends before its fewest rounds, and
    continues when it is resumed.
    """
    excess_s = pace.predict_s(fewest) - left_s
    slow: list[tuple[PlannedCase, str, float]] = []
    for case, variant, seconds in _list_eager(fewest, cases, pace):
        if excess_s <= 0:
            break
        slow.append((case, variant, seconds))
        processes = (one for one in _timed(fewest) if one.process.case == case.id and variant in one.variants)
        excess_s -= seconds * sum(1 for _ in processes)
    cold: list[Coming] = []
    compiling = {case.id for case in cases if case.measures == COMPILATION}
    for one in sorted(_cold(fewest), key=lambda one: (one.process.case in compiling, -pace.predict_s([one]))):
        if excess_s <= 0:
            break
        cold.append(one)
        excess_s -= pace.predict_s([one])
    return LeftOut(tuple(slow), tuple(cold)) if excess_s <= 0 else LeftOut()


def _list_eager(
    coming: Sequence[Coming], cases: Sequence[PlannedCase], pace: Pace
) -> list[tuple[PlannedCase, str, float]]:
    """Return the eager variants that are too slow and still to be timed, the slowest first."""
    timed = {(one.process.case, name) for one in _timed(coming) for name in one.variants}
    eager = [
        (case, item.name, pace.predict_variant_s(case.id, item.name))
        for case in cases
        for item in case.variants
        if _is_eager(item) and (case.id, item.name) in timed
    ]
    return sorted((one for one in eager if one[2] > TOO_SLOW_S), key=lambda one: one[2], reverse=True)


def _is_eager(item: PlannedVariant) -> bool:
    """Return whether a variant is eager code, of today or of an earlier run."""
    return item.mode == "eager" or (item.mode == LOCK_STEP and (item.same_as or "").endswith(":eager"))


def _timed(coming: Sequence[Coming]) -> list[Coming]:
    return [one for one in coming if one.process.keeps_samples]


def _cold(coming: Sequence[Coming]) -> list[Coming]:
    """Return the processes of later rounds that keep no samples: they repeat the probes of an earlier round."""
    return [one for one in coming if one.process.round > 0 and not one.process.refills and one not in _timed([one])]
