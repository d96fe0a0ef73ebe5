"""Where the time goes that whole rounds leave: to more processes of cases that matter, where intervals are widest."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scipy.special import stdtrit

from jaxmeter.harness.metrics.statistics import FEWEST_PROCESSES, SHOWN_CONFIDENCE
from jaxmeter.harness.plan.settings import MOST_PROCESSES
from jaxmeter.harness.record import Number, Outcome, PlannedCase, Settings
from jaxmeter.harness.record.cases import COMPILATION


@dataclass(frozen=True)
class Width:
    """How wide the widest interval of a case is, and from how many processes; of logarithms, half."""

    case: PlannedCase
    half: float
    processes: int

    def predict(self, more: int) -> float:
        """The same after so many more processes: the standard deviation stays, the t multiplier and the root change.

        Whoever is given some is looked at twice, and shares the error.
        """
        now, then = self.processes, self.processes + more
        return self.half * _multiplier(then, looks=2 if more else 1) / _multiplier(now)

    def find_fewest(self, most: int) -> int | None:
        """How many more processes narrow it at least, although they are a second look; None where it takes too many.

        Args:
          most: Processes that it may have in all.
        """
        return next((more for more in range(1, most - self.processes + 1) if self.predict(more) < self.half), None)


def matters(case: PlannedCase) -> bool:
    """Whether an answer of the page, or a published claim, rests on the times of the case."""
    rests = case.represents_workload or bool(case.published) or case.answer is not None
    return rests and case.measures != COMPILATION


def measure_width(case: PlannedCase, timings: Iterable[Outcome]) -> Width | None:
    """Of the case's ratios, or of its times where there is no ratio; None where no interval can be told."""
    timings = tuple(timings)
    ratios = _values_of(timings, "log_ratio")
    logs = ratios or [[math.log(value) for value in times] for times in _values_of(timings, "execution_s")]
    halves = [(statistics.stdev(values) * _multiplier(len(values)), len(values)) for values in logs if _enough(values)]
    return Width(case, *max(halves)) if halves else None


def share_out(widths: Sequence[Width], seconds: dict[str, float], left_s: float, settings: Settings) -> dict[str, int]:
    """How many more processes each case is given: one after the other to the one that would be the widest.

    The first are as many as narrow it: a single one more than ten would widen it, by the look that it costs. All is
    decided at once, so that the intervals are looked at once and no more before the end.

    Args:
      seconds: What one more process takes, by the case's id.
    Returns:
      By the case's id, for those that are given some.
    """
    given: dict[str, int] = {}
    most = MOST_PROCESSES[settings.level]
    fewest = {one.case.id: more for one in widths if (more := one.find_fewest(most)) is not None}

    def next_of(one: Width) -> int:
        return 1 if one.case.id in given else fewest[one.case.id]

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
        widest = max(open_to, key=lambda one: one.predict(given.get(one.case.id, 0)))
        more = next_of(widest)
        given[widest.case.id] = given.get(widest.case.id, 0) + more
        left_s -= more * seconds[widest.case.id]
    return given


def _enough(values: Sequence[Number]) -> bool:
    return len(values) >= FEWEST_PROCESSES


def _multiplier(processes: int, looks: int = 1) -> float:
    """Of the standard deviation, for half the interval of a mean."""
    return float(stdtrit(processes - 1, 1 - (1 - SHOWN_CONFIDENCE) / looks / 2)) / math.sqrt(processes)


def _values_of(timings: Sequence[Outcome], metric: str) -> list[list[Number]]:
    """Each variant's values of a timing metric, without the missing ones."""
    known = [[value for value in timing.values.get(metric, ()) if value is not None] for timing in timings]
    return [values for values in known if values]
