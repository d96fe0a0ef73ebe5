"""How many rounds over all cases the time allows, and what is left out where it does not allow the fewest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.parent.pace import Pace
from harness.plan.launches import Launch
from harness.plan.probes import PROBES
from harness.record import PlannedCase

TOO_SLOW_S = 1.0
"""Of a launch. Most variants take 0.1 to 0.3 s of it, by their sweeps; to leave one of those out saves next to nothing,
and as a rule eager code is what speed-ups refer to."""


@dataclass(frozen=True)
class LeftOut:
    """What the fewest rounds do without, so that they fit into the time that is left.

    Args:
      slow: Case and eager variant that are not timed any more, with the seconds that a launch spends on each.
      cold: Launches with a cold process that are not run; their metrics have fewer values, maybe no interval.
    """

    slow: tuple[tuple[PlannedCase, str, float], ...] = ()
    cold: tuple[Launch, ...] = ()


def count_rounds(launches: Sequence[Launch], pace: Pace, left_s: float, *, done: int) -> int:
    """How many rounds there will be: as many as fit whole into the time that is left, and never fewer than the fewest.

    Args:
      launches: Those to come, of all rounds.
      done: Rounds that are whole.
    """
    rounds, needed_s = done, 0.0
    for index in sorted({launch.round for launch in launches if launch.round >= done}):
        of_round = [launch for launch in launches if launch.round == index]
        needed_s += pace.predict_s(of_round)
        if needed_s > left_s and any(launch.extra for launch in of_round):
            break
        rounds = index + 1
    return rounds


def leave_out(launches: Sequence[Launch], cases: Sequence[PlannedCase], pace: Pace, left_s: float) -> LeftOut:
    """What to leave out of the fewest rounds: slow eager variants, then cold processes, the slowest of each first.

    Eager code that takes seconds a call tells little by its exact time, and it takes the time of all others. What is
    left may still be too much: then the time is used up before the last of the fewest rounds.
    """
    coming = [launch for launch in launches if not launch.extra]
    excess_s = pace.predict_s(coming) - left_s
    slow: list[tuple[PlannedCase, str, float]] = []
    for case, variant, seconds in _list_eager(coming, cases, pace):
        if excess_s <= 0:
            break
        slow.append((case, variant, seconds))
        excess_s -= seconds * sum(launch.case == case.id and variant in launch.variants for launch in _timed(coming))
    cold: list[Launch] = []
    for launch in sorted(_cold(coming), key=lambda one: pace.predict_s([one]), reverse=True):
        if excess_s <= 0:
            break
        cold.append(launch)
        excess_s -= pace.predict_s([launch])
    return LeftOut(tuple(slow), tuple(cold))


def _list_eager(
    launches: Sequence[Launch], cases: Sequence[PlannedCase], pace: Pace
) -> list[tuple[PlannedCase, str, float]]:
    """Eager variants that are too slow and still to be timed, the slowest first."""
    timed = {(launch.case, name) for launch in _timed(launches) for name in launch.variants}
    eager = [
        (case, item.name, pace.predict_variant_s(case.id, item.name))
        for case in cases
        for item in case.variants
        if item.mode == "eager" and (case.id, item.name) in timed
    ]
    return sorted((one for one in eager if one[2] > TOO_SLOW_S), key=lambda one: one[2], reverse=True)


def _timed(launches: Sequence[Launch]) -> list[Launch]:
    return [launch for launch in launches if any(PROBES[probe].keeps_samples for probe in launch.probes)]


def _cold(launches: Sequence[Launch]) -> list[Launch]:
    """Launches of later rounds that repeat what an earlier one looked at, and time no call by its samples."""
    return [
        launch
        for launch in launches
        if launch.round > 0 and not launch.refills and not any(PROBES[probe].keeps_samples for probe in launch.probes)
    ]
