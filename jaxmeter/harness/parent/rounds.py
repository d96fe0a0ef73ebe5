"""Rounds over all cases, and extra processes: how many the time allows, from what processes took so far."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter

from scipy.special import stdtrit

from jaxmeter.harness.metrics.statistics import FEWEST_PROCESSES, SHOWN_CONFIDENCE
from jaxmeter.harness.plan.messages import Heartbeat
from jaxmeter.harness.plan.processes import SIDE_PROCESSES, PlannedProcess
from jaxmeter.harness.plan.settings import MOST_PROCESSES
from jaxmeter.harness.record import LOCK_STEP, Number, Outcome, PlannedCase, PlannedVariant, Settings
from jaxmeter.harness.record.cases import COMPILATION
from jaxmeter.harness.record.processes import Holder

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
    for index in sorted({upcoming.process.round for upcoming in coming if upcoming.process.round >= done}):
        of_round = [upcoming for upcoming in coming if upcoming.process.round == index]
        needed_s += pace.predict_s(of_round)
        if needed_s > left_s and any(upcoming.process.extra for upcoming in of_round):
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
        of_case = (upcoming for upcoming in _timed(fewest) if upcoming.process.case == case.id)
        excess_s -= seconds * sum(variant in upcoming.variants for upcoming in of_case)
    cold: list[Coming] = []
    compiling = {case.id for case in cases if case.measures == COMPILATION}
    slowest = sorted(_cold(fewest), key=lambda item: (item.process.case in compiling, -pace.predict_s([item])))
    for upcoming in slowest:
        if excess_s <= 0:
            break
        cold.append(upcoming)
        excess_s -= pace.predict_s([upcoming])
    return LeftOut(tuple(slow), tuple(cold)) if excess_s <= 0 else LeftOut()


def _list_eager(
    coming: Sequence[Coming], cases: Sequence[PlannedCase], pace: Pace
) -> list[tuple[PlannedCase, str, float]]:
    """Return the eager variants that are too slow and still to be timed, the slowest first."""
    timed = {(upcoming.process.case, name) for upcoming in _timed(coming) for name in upcoming.variants}
    slow = [
        (case, item.name, seconds)
        for case in cases
        for item in case.variants
        if _is_eager(item) and (case.id, item.name) in timed
        if (seconds := pace.predict_variant_s(case.id, item.name)) > TOO_SLOW_S
    ]
    return sorted(slow, key=itemgetter(2), reverse=True)


def _is_eager(item: PlannedVariant) -> bool:
    """Return whether a variant is eager code, of today or of an earlier run."""
    return item.mode == "eager" or (item.mode == LOCK_STEP and (item.same_as or "").endswith(":eager"))


def _timed(coming: Sequence[Coming]) -> list[Coming]:
    return [upcoming for upcoming in coming if upcoming.process.keeps_samples]


def _cold(coming: Sequence[Coming]) -> list[Coming]:
    """Return the processes of later rounds that keep no samples: they repeat the probes of an earlier round."""
    later = (upcoming for upcoming in coming if upcoming.process.round > 0)
    return [upcoming for upcoming in later if not upcoming.process.refills and not upcoming.process.keeps_samples]


GRACE_S = 10.0
"""Chosen: a process that runs when the budget ends has so much longer, or GRACE of the budget where that is more."""

GRACE = 0.05

STAGE_SHARE = 1 / 3
"""One stage of one variant may take so much of the time that is left, where other cases wait for their first round.
However many variants exceed it one after the other, some time is left for the other cases."""

STAGE_FLOOR_S = 10.0
"""A stage may always take so long: all stages of an unrolled loop of 360 steps took 11.6 s together."""


@dataclass(frozen=True)
class ProcessAllowance:
    """The time that a process may take, asked when the process begins.

    Args:
      budget_s: The budget of the whole run; infinite for a run without a limit.
      left_s: Returns how much of the budget is left.
      others_wait: Whether other cases wait for their first round.
    """

    budget_s: float
    left_s: Callable[[], float]
    others_wait: bool = False

    def find_end_s(self) -> float:
        """Return after how many seconds a process that begins now is ended, whatever it does."""
        return max(0.0, self.left_s()) + self.grace_s

    @property
    def grace_s(self) -> float:
        """The time that a process may continue after the budget's end."""
        return max(GRACE_S, GRACE * self.budget_s)

    def find_stage_s(self) -> float:
        """Return how long one stage of one variant may take; infinite if no other cases wait."""
        return max(STAGE_FLOOR_S, STAGE_SHARE * self.left_s()) if self.others_wait else math.inf


_Stage = tuple[str, str, str | None, str]
"""Case, process, variant and stage."""


@dataclass
class Holders:
    """Seconds by case, process, variant and stage, as heartbeats name them."""

    clock: Callable[[], float]
    _taken_s: dict[_Stage, float] = field(default_factory=dict)

    def watch(
        self, case: PlannedCase, process: PlannedProcess, tell: Callable[[Heartbeat], None]
    ) -> Callable[[Heartbeat], None]:
        """Start with a process; return the function that receives its heartbeats and passes them to `tell`."""
        self._now: _Stage = (case.name, process.kind, None, "start")
        self._since = self.clock()

        def beat(heartbeat: Heartbeat) -> None:
            self.stop()
            self._now = (case.name, process.kind, heartbeat.variant, heartbeat.stage)
            tell(heartbeat)

        return beat

    def stop(self) -> None:
        """Count the stage that ends now."""
        now = self.clock()
        self._taken_s[self._now] = self._taken_s.get(self._now, 0.0) + now - self._since
        self._since = now

    def find_longest(self) -> Holder | None:
        """Return the stage that took the most; None before any process."""
        if not self._taken_s:
            return None
        (case, kind, variant, stage), seconds = max(self._taken_s.items(), key=lambda item: item[1])
        return Holder(case=case, process=kind, variant=variant, stage=stage, seconds=round(seconds, 1))


REACHABLE = 5.0
"""Multiple of the target half-width that an interval must be able to reach: ±15 % if the target is ±3 %."""

SHORTEST_S = 1e-3
"""Lower limit of the predicted time of a process, even if a clock reported less."""


@dataclass(frozen=True)
class Width:
    """The half-width of the widest interval of a case, of logarithms, and the number of its processes."""

    case: PlannedCase
    half: float
    processes: int

    def predict(self, more: int) -> float:
        """Return the half-width after more processes: only the t multiplier and the square root change.

        A case with more processes has two interim analyses, between which the error is divided.
        """
        now, then = self.processes, self.processes + more
        return self.half * _multiplier(then, looks=2 if more else 1) / _multiplier(now)

    def find_fewest(self, most: int) -> int | None:
        """Return how many more processes narrow the interval despite a second interim analysis; None if too many.

        Args:
          most: Largest number of processes in all.
        """
        return next((more for more in range(1, most - self.processes + 1) if self.predict(more) < self.half), None)


def matters(case: PlannedCase) -> bool:
    """Whether an answer of the page, or a published claim, rests on the times of the case."""
    rests = case.represents_workload or bool(case.published) or case.answer is not None
    return rests and case.measures != COMPILATION


def measure_width(case: PlannedCase, timings: Iterable[Outcome], settings: Settings) -> Width | None:
    """Return the widest interval of the case's ratios, or of its times if it has no ratio; None without an interval.

    Intervals do not count if the largest number of processes would leave them wider than REACHABLE times the target.
    The time helps other cases more.
    """
    timings = tuple(timings)
    ratios = _values_of(timings, "log_ratio")
    logs = ratios or [[math.log(value) for value in times] for times in _values_of(timings, "execution_s")]
    widths = [
        Width(case, statistics.stdev(values) * _multiplier(len(values)), len(values))
        for values in logs
        if _enough(values)
    ]
    most, widest = MOST_PROCESSES[settings.level], REACHABLE * settings.target_half_width
    reachable = [width for width in widths if width.predict(max(0, most - width.processes)) <= widest]
    return max(reachable, key=lambda width: (width.half, width.processes), default=None)


def share_out(widths: Sequence[Width], seconds: dict[str, float], left_s: float, settings: Settings) -> dict[str, int]:
    """Return how many more processes each case gets; the next ones go to the interval that narrows most per second.

    So slow cases do not use up the time of the others. A case first gets the fewest processes that narrow its interval:
    after ten processes, a single one would widen the interval, because of the additional interim analysis. One decision
    covers all extra processes, so there is only one interim analysis before the end.

    Args:
      seconds: Time of one more process, by the case's id.
    Returns:
      Number of more processes by the case's id, for the cases that get some.
    """
    given: dict[str, int] = {}
    most = MOST_PROCESSES[settings.level]
    fewest = {width.case.id: more for width in widths if (more := width.find_fewest(most)) is not None}

    def next_of(width: Width) -> int:
        return 1 if width.case.id in given else fewest[width.case.id]

    def find_gain(width: Width) -> float:
        """Return by how much the interval narrows per second, with the best number of further processes."""
        so_far = given.get(width.case.id, 0)
        each_s = max(seconds[width.case.id], SHORTEST_S)
        affordable = min(most - width.processes - so_far, int(left_s / each_s))
        gains = [
            (width.predict(so_far) - width.predict(so_far + more)) / (more * each_s)
            for more in range(1, affordable + 1)
        ]
        return max(gains, default=0.0)

    while left_s > 0:
        open_to = [
            width
            for width in widths
            if width.case.id in fewest
            and width.processes + given.get(width.case.id, 0) < most
            and next_of(width) * seconds[width.case.id] <= left_s
            and width.predict(given.get(width.case.id, 0)) > settings.target_half_width
        ]
        if not open_to:
            break
        best = max(open_to, key=find_gain)
        more = next_of(best)
        given[best.case.id] = given.get(best.case.id, 0) + more
        left_s -= more * seconds[best.case.id]
    return given


def _enough(values: Sequence[Number]) -> bool:
    return len(values) >= FEWEST_PROCESSES


@lru_cache
def _multiplier(processes: int, looks: int = 1) -> float:
    """Return the multiple of the standard deviation that half the interval of a mean is."""
    return float(stdtrit(processes - 1, 1 - (1 - SHOWN_CONFIDENCE) / looks / 2)) / math.sqrt(processes)


def _values_of(timings: Sequence[Outcome], metric: str) -> list[list[Number]]:
    """Each variant's values of a timing metric, without the missing ones."""
    known = [[value for value in timing.values.get(metric, ()) if value is not None] for timing in timings]
    return [values for values in known if values]


Key = tuple[str, ...]


@dataclass(frozen=True)
class Coming:
    """A planned process, and the variants that it still looks at."""

    process: PlannedProcess
    variants: tuple[str, ...]


@dataclass
class Pace:
    """Seconds of each process by what it looked at: one of a later round takes about as long."""

    _taken_s: dict[Key, list[tuple[frozenset[str], frozenset[str], float]]] = field(default_factory=dict)
    _by_process: dict[str, list[float]] = field(default_factory=dict)
    _by_variant: dict[tuple[str, str], float] = field(default_factory=dict)

    def add(self, ran: Coming, seconds: float) -> None:
        """Counts a process that has ended, or several that did the work of one."""
        how = (frozenset(ran.variants), _sides_of(ran.process), seconds)
        self._taken_s.setdefault(_key_of(ran.process), []).append(how)
        self._by_process.setdefault(ran.process.kind, []).append(seconds)

    def add_variant(self, case: str, variant: str, seconds: float) -> None:
        """What one variant took of a timing process."""
        self._by_variant[case, variant] = seconds

    def predict_s(self, coming: Iterable[Coming]) -> float:
        """What processes will take."""
        return math.fsum(map(self._predict_one_s, coming))

    def predict_variant_s(self, case: str, variant: str) -> float:
        """What one variant takes of a timing process; 0 where it was not timed yet."""
        return self._by_variant.get((case, variant), 0.0)

    def _predict_one_s(self, upcoming: Coming) -> float:
        """Return the mean duration of equal processes.

        Without equal processes, return the last duration with other side times. Else return the last duration with more
        variants, minus the time of the additional variants. Else return the mean of the kind.
        """
        like_it = self._taken_s.get(_key_of(upcoming.process), [])
        alike = [(sides, seconds) for variants, sides, seconds in like_it if variants == frozenset(upcoming.variants)]
        equal = [seconds for sides, seconds in alike if sides == _sides_of(upcoming.process)]
        if not equal and alike:
            equal = [alike[-1][1]]
        if not equal and like_it:
            variants, _, seconds = like_it[-1]
            without_s = sum(
                self.predict_variant_s(upcoming.process.case, name) for name in variants.difference(upcoming.variants)
            )
            equal = [max(0.0, seconds - without_s)]
        taken_s = equal or self._by_process.get(upcoming.process.kind) or [0.0]
        return math.fsum(taken_s) / len(taken_s)


def _sides_of(process: PlannedProcess) -> frozenset[str]:
    """Return the side times that a process measures."""
    taken = (side for side, processes in SIDE_PROCESSES.items() if process.round < processes)
    return frozenset(taken) if process.keeps_samples else frozenset()


def _key_of(process: PlannedProcess) -> Key:
    """The same in every round."""
    return (process.case, process.kind, process.cache_state, *process.variants)
