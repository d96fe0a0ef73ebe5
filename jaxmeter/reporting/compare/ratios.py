"""Ratios of what was measured of two variants, how likely they are by chance, and how many processes confirm one."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import TypeVar

from scipy.special import stdtr, stdtrit

from jaxmeter.harness.metrics.across import count_looks, subtract_means
from jaxmeter.harness.metrics.derived import read_log_ratios
from jaxmeter.harness.metrics.metric import Readable, Reading
from jaxmeter.harness.metrics.plausibility import at_both_levels
from jaxmeter.harness.metrics.statistics import CONFIDENCE, FEWEST_PROCESSES, Interval, exponentiate, find_variance
from jaxmeter.harness.record import Settings
from jaxmeter.harness.record.runs import CONFIRMING_PROCESSES, MOST_CONFIRMING


def compare_unpaired(
    numerators: Sequence[float],
    denominators: Sequence[float],
    *,
    confidence: float = CONFIDENCE,
    shared: float = 0.0,
) -> Interval:
    """Ratio of two geometric means of unpaired processes, with Welch's t interval on the logs.

    Args:
      numerators, denominators: One per process, shapes (j,) and (k,), all > 0.
      shared: Variance of the ratio's logarithm, of what the processes of a side have in common, and the two sides not.
    Returns:
      Interval, dimensionless; its count is the smaller of j and k.
    Raises:
      ValueError: No values, or one that is not positive.
    """
    above, below = ([math.log(value) for value in values] for values in (numerators, denominators))
    return exponentiate(subtract_means(above, below, confidence=confidence, shared=shared))


def divide_unpaired(
    above: Sequence[float], below: Sequence[float], settings: Settings, *, looks: int = 1, shared: float = 0.0
) -> Interval | None:
    """How many times the one's processes have what the other's have; None where one side has no values, all > 0.

    Args:
      looks: How often they were looked at to decide how many there are; the error is shared among them.
      shared: Variance of the ratio's logarithm, of what the processes of a side have in common, and the two sides not.
    """
    if not above or not below:
        return None

    def compare(confidence: float) -> Interval:
        return compare_unpaired(above, below, confidence=1 - (1 - confidence) / looks, shared=shared)

    try:
        return at_both_levels(settings, compare)
    except OverflowError:
        return compare_unpaired([statistics.median(above)], [statistics.median(below)])


def divide_readings(above: Reading, below: Reading, settings: Settings, *, two_runs: bool = False) -> Interval | None:
    """The ratio over processes that measured one side each; exact where both sides are. None where one has a 0.

    Args:
      two_runs: Whether the sides are of two runs, which differ by more than their processes tell.
    """
    values = above.known, below.known
    if not all(values) or min(map(min, values)) <= 0:
        return None
    if above.exact and below.exact:
        ratio = above.known[0] / below.known[0]
        return Interval(ratio, ratio, ratio, min(map(len, values)))
    shared = above.shared + below.shared if two_runs else 0.0
    return divide_unpaired(*values, settings, looks=max(above.looks, below.looks), shared=shared)


K = TypeVar("K")

LEAST_CHANCE = 1e-12
"""Smaller p-values of unpaired processes are given as this one."""

POWER = 0.95
"""How likely what should be found is found."""

BEYOND = 1.5
"""Times its budget, a slowdown should be found: 4.5 % where 3 % are allowed. Just beyond it, no number is enough."""

LEAST_FOUND = 0.03
"""The smallest slowdown that processes are added for, however small the budget: a t of few processes needs more."""

SHORTER = 1.3
"""How many times as much a process with CONFIRMING_BLOCKS scatters as one of a usual run, with up to 80: by SCATTER of
harness/plan/processes.py, the root of (1 + 10² / 36) / (1 + 10² / 80)."""


def find_chance(earlier: Readable, later: Readable) -> float | None:
    """The two-sided p-value of the processes that timed both; None where they are too few.

    By the t that their ratio's interval goes by: with the same variance, and the error shared among as many looks. For
    a replay beside its own variant, whose ratio has no error between runs.
    """
    pairs = zip(read_log_ratios(earlier), read_log_ratios(later), strict=False)
    known = [mine - theirs for mine, theirs in pairs if mine is not None and theirs is not None]
    if len(known) < FEWEST_PROCESSES:
        return None
    variance, degrees = find_variance(known), len(known) - 1.0
    if (borrowed := earlier.pool.lend_to_ratio(earlier, later)) is not None:
        variance, degrees = borrowed.moderate(variance, degrees)
    mean, error = math.fsum(known) / len(known), math.sqrt(variance / len(known))
    if error == 0:
        return 1.0 if mean == 0 else 0.0
    looks = max(count_looks(earlier), count_looks(later))
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
    for rank, (key, chance) in enumerate(sorted(chances.items(), key=lambda item: item[1])):
        if chance > level / max(1, among - rank):
            break
        rejected.append(key)
    return frozenset(rejected)


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
