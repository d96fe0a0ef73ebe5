"""How likely a difference is by chance, alone and among many."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeVar

from scipy.special import stdtr

from jaxmeter.harness.metrics.across import count_looks
from jaxmeter.harness.metrics.derived import read_log_ratios
from jaxmeter.harness.metrics.metric import Readable, Reading
from jaxmeter.harness.metrics.statistics import FEWEST_PROCESSES, find_variance

from .statistics import compare_unpaired

K = TypeVar("K")

LEAST_CHANCE = 1e-12
"""Smaller p-values of unpaired processes are given as this one."""


def find_chance(one: Readable, other: Readable) -> float | None:
    """The two-sided p-value of the processes that timed both; None where they are too few.

    By the t that their ratio's interval goes by: with the same variance, and the error shared among as many looks. For
    a replay beside its own variant, whose ratio has no error between runs.
    """
    pairs = zip(read_log_ratios(one), read_log_ratios(other), strict=False)
    known = [mine - theirs for mine, theirs in pairs if mine is not None and theirs is not None]
    if len(known) < FEWEST_PROCESSES:
        return None
    variance, degrees = find_variance(known), len(known) - 1.0
    if (borrowed := one.pool.lend_to_ratio(one, other)) is not None:
        variance, degrees = borrowed.moderate(variance, degrees)
    mean, error = math.fsum(known) / len(known), math.sqrt(variance / len(known))
    if error == 0:
        return 1.0 if mean == 0 else 0.0
    looks = max(count_looks(one), count_looks(other))
    return min(1.0, looks * 2 * float(stdtr(degrees, -abs(mean) / error)))


def find_chance_unpaired(above: Reading, below: Reading, *, minimum_effect: float, shared: float = 0.0) -> float | None:
    """Return the p-value of a ratio of two runs' times, if the call is slower or faster by at most the minimum effect.

    It is the smallest level at which the ratio's interval excludes such a difference, since the part of the error that
    a run's processes share has no t distribution. None where a side has too few processes for an interval.

    Args:
      shared: Variance of the logarithms that the processes of each run share at least.
    """
    looks = max(above.looks, below.looks)
    together = sum(max(side.shared, shared) for side in (above, below))

    def excludes(level: float) -> bool:
        try:
            ratio = compare_unpaired(above.known, below.known, confidence=1 - level / looks, shared=together)
        except OverflowError:  # so few processes that the interval has no end
            return False
        assert ratio.low is not None
        assert ratio.high is not None
        return ratio.low > 1 + minimum_effect or ratio.high < 1 / (1 + minimum_effect)

    if min(len(above.known), len(below.known)) < FEWEST_PROCESSES:
        return None
    low, high = LEAST_CHANCE, 1.0
    if excludes(low):
        return low
    while high > low * 1.01:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if excludes(middle) else (middle, high)
    return high


def reject_by_holm(chances: Mapping[K, float], *, among: int, level: float) -> frozenset[K]:
    """Which differences hold when so many were looked at, so that any is false with this probability at most.

    Args:
      chances: p-values of those that may differ; all others of the family count as 1.
      among: How many were looked at.
    Source: Holm, A Simple Sequentially Rejective Multiple Test Procedure, Scandinavian Journal of Statistics 6, 1979.
    """
    rejected: list[K] = []
    for rank, (key, chance) in enumerate(sorted(chances.items(), key=lambda one: one[1])):
        if chance > level / max(1, among - rank):
            break
        rejected.append(key)
    return frozenset(rejected)
