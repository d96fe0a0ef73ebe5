"""How many processes a confirmation should have, by how much the first ones scatter."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from scipy.special import stdtrit

from jaxmeter.harness.metrics.statistics import CONFIDENCE, FEWEST_PROCESSES, Interval
from jaxmeter.harness.record.suspects import CONFIRMING_PROCESSES, MOST_CONFIRMING

POWER = 0.95
"""How likely what should be found is found."""

BEYOND = 1.5
"""Times its budget, a slowdown should be found: 4.5 % where 3 % are allowed. Just beyond it, no number is enough."""

LEAST_FOUND = 0.03
"""The smallest slowdown that processes are added for, however small the budget: a t of few processes needs more."""

SHORTER = 1.3
"""How many times as much a process with CONFIRMING_BLOCKS scatters as one of a usual run, with up to 80: by SCATTER of
harness/plan/timing_process.py, the root of (1 + 10² / 36) / (1 + 10² / 80)."""


def plan_processes(suspects: Sequence[tuple[Interval, float]], *, among: int) -> int:
    """As many as half of the suspects need, if they are as much slower as should be found.

    The processes that confirm are others than these, so choosing their number by these costs no confidence.

    Args:
      suspects: The ratio of each by the first processes, and its budget as a share.
      among: How many times Holm's procedure looks at; the first of them has this part of the error.
    """
    needed = [
        _count(SHORTER * scatter, math.log1p(max(BEYOND * share, LEAST_FOUND)), (1 - CONFIDENCE) / max(1, among))
        for ratio, share in suspects
        if (scatter := find_scatter(ratio)) is not None
    ]
    return math.ceil(statistics.median(needed)) if needed else CONFIRMING_PROCESSES


def find_scatter(ratio: Interval) -> float | None:
    """Standard deviation of the logs of a ratio's processes, by its bounds; None without bounds."""
    bounds, count = ratio.decisive, ratio.count
    if bounds.low is None or bounds.high is None or bounds.low <= 0 or count < FEWEST_PROCESSES:
        return None
    half = math.log(bounds.high / bounds.low) / 2
    return half * math.sqrt(count) / float(stdtrit(count - 1, (1 + CONFIDENCE) / 2))


def _count(scatter: float, log_ratio: float, level: float) -> int:
    """The fewest processes that find a ratio with the power that is wanted, between the usual number and the most."""
    for count in range(CONFIRMING_PROCESSES, MOST_CONFIRMING):
        reach = float(stdtrit(count - 1, 1 - level / 2)) + float(stdtrit(count - 1, POWER))
        if reach * scatter <= log_ratio * math.sqrt(count):
            return count
    return MOST_CONFIRMING
