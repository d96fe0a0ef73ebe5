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


def measure_width(case: PlannedCase, timings: Iterable[Outcome]) -> Width | None:
    """Return the width of the case's ratios, or of its times if it has no ratio; None if there is no interval."""
    timings = tuple(timings)
    ratios = _values_of(timings, "log_ratio")
    logs = ratios or [[math.log(value) for value in times] for times in _values_of(timings, "execution_s")]
    halves = [(statistics.stdev(values) * _multiplier(len(values)), len(values)) for values in logs if _enough(values)]
    return Width(case, *max(halves)) if halves else None


def share_out(widths: Sequence[Width], seconds: dict[str, float], left_s: float, settings: Settings) -> dict[str, int]:
    """Return how many more processes each case gets: always for the case whose interval would be the widest.

    A case first gets as many as narrow its interval: a single one after ten would widen it, because of the additional
    interim analysis. All are decided at once, so that there is only one interim analysis before the end.

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
