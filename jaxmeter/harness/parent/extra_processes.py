"""Extra processes in the time after the rounds, for cases that matter and whose intervals narrow most per second."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from scipy.special import stdtrit

from jaxmeter.harness.metrics.statistics import FEWEST_PROCESSES, SHOWN_CONFIDENCE
from jaxmeter.harness.plan.settings import MOST_PROCESSES
from jaxmeter.harness.record import Number, Outcome, PlannedCase, Settings
from jaxmeter.harness.record.cases import COMPILATION

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
    fewest = {one.case.id: more for one in widths if (more := one.find_fewest(most)) is not None}

    def next_of(one: Width) -> int:
        return 1 if one.case.id in given else fewest[one.case.id]

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
            one
            for one in widths
            if one.case.id in fewest
            and one.processes + given.get(one.case.id, 0) < most
            and next_of(one) * seconds[one.case.id] <= left_s
            and one.predict(given.get(one.case.id, 0)) > settings.target_half_width
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
