"""Where a series of times changed for good: from one level to another, distinguished from outliers and noise.

The split is that of E-divisive (Matteson & James 2014, A nonparametric approach for multiple change point analysis):
the one that sets both sides farthest apart, by the distances of all pairs; then both sides are split, and so on. Of
these the least sure are taken back, until each is a change point beside the levels next to it: a rank test tells the
sides apart, and their medians differ by more than the minimum effect. docs/history.md has its error rates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy
from numpy.typing import NDArray
from scipy.ndimage import median_filter
from scipy.stats import mannwhitneyu

from jaxmeter.harness.metrics.statistics import MINIMUM_EFFECT

LARGEST_P = 1e-3
USUAL_LENGTH = 60
"""Of the rank test, up to that many values; of more, less by the power of 1.5. Since the best splits are chosen among
all, their own p is too small, the more there are to choose from. Chosen by how often series without a change point
have one (docs/history.md)."""

FEWEST_BESIDE = 4
"""Values on either side of a change point."""

FEWEST = 14
"""Values of a series. With 6 and 8 of which all of one side are larger, the rank test's p is 0.0007."""

WINDOW = 7
CLIPPED = 3.0
"""A value that is more standard deviations from the median of its neighbours is moved there: it is an outlier, and
weighs no more than the last that is not. A change point stays, having neighbours on its side."""

MAD_TO_SD = 1.4826
"""Of a normal distribution: its standard deviation over its median absolute deviation."""

Logs = NDArray[numpy.float64]


def find_splits(values: Sequence[float], minimum_effect: float = MINIMUM_EFFECT) -> tuple[int, ...]:
    """Indices of the values that a new level begins with; empty where there are too few values.

    Args:
      values: In the order of time, each > 0.
      minimum_effect: The smallest difference of two levels that counts, as a share.
    """
    if len(values) < FEWEST:
        return ()
    logs = numpy.log(numpy.asarray(values, dtype=numpy.float64))
    clipped = _clip(logs)
    kept = _keep_steps(logs, _split(clipped, 0), minimum_effect)
    return _keep_steps(logs, _move(clipped, kept), minimum_effect)


def _clip(logs: Logs) -> Logs:
    """The logs without outliers."""
    middle = median_filter(logs, size=WINDOW, mode="nearest")
    off = logs - middle
    reach = CLIPPED * MAD_TO_SD * float(numpy.median(numpy.abs(off)))
    clipped: Logs = middle + numpy.clip(off, -reach, reach)
    return clipped


def _split(logs: Logs, start: int) -> list[int]:
    """Every split of a stretch that begins at an index of the series, down to the shortest parts."""
    at = _find_split(logs)
    return [] if at is None else [*_split(logs[:at], start), start + at, *_split(logs[at:], start + at)]


def _move(logs: Logs, splits: Sequence[int]) -> list[int]:
    """Each split at the best place between its neighbours: it was found in a stretch that others have left since."""
    edges = [0, *splits, len(logs)]
    for index in range(1, len(edges) - 1):
        before, _, after = edges[index - 1 : index + 2]
        at = _find_split(logs[before:after])
        edges[index] = edges[index] if at is None else before + at
    return edges[1:-1]


def _find_split(logs: Logs) -> int | None:
    """Where both sides are farthest apart; None where one would be too short."""
    count = len(logs)
    if count < 2 * FEWEST_BESIDE:
        return None
    apart = numpy.abs(logs[:, None] - logs[None, :]).cumsum(0).cumsum(1)
    left = numpy.arange(FEWEST_BESIDE, count - FEWEST_BESIDE + 1)
    right = count - left
    within_left = apart[left - 1, left - 1]
    within_right = apart[-1, -1] - apart[left - 1, -1] - apart[-1, left - 1] + within_left
    between = apart[left - 1, -1] - within_left
    energy = 2 * between / (left * right) - within_left / left**2 - within_right / right**2
    return int(left[numpy.argmax(left * right / count * energy)])


def _keep_steps(logs: Logs, splits: Sequence[int], minimum_effect: float) -> tuple[int, ...]:
    """The splits that are change points, once the least sure have been taken back one by one."""
    edges = [0, *splits, len(logs)]
    largest_p = LARGEST_P * min(1.0, USUAL_LENGTH / len(logs)) ** 1.5

    def doubt(index: int) -> tuple[float, float]:
        before, at, after = edges[index - 1 : index + 2]
        return _doubt(logs[before:at], logs[at:after], minimum_effect)

    doubts = {index: doubt(index) for index in range(1, len(edges) - 1)}
    while doubts and max(doubts.values())[0] > largest_p:
        least_sure = max(doubts, key=doubts.__getitem__)
        del edges[least_sure]
        rest = [doubts[index] for index in doubts if index != least_sure]
        doubts = dict(enumerate(rest, 1))
        doubts |= {index: doubt(index) for index in (least_sure - 1, least_sure) if index in doubts}
    return tuple(edges[1:-1])


def _doubt(before: Logs, after: Logs, minimum_effect: float) -> tuple[float, float]:
    """How little two levels differ: the p-value of their being one, then how near they are.

    1 where so few values can tell nothing, and 2 where the levels differ by less than the minimum effect.
    """
    apart = abs(float(numpy.median(after) - numpy.median(before)))
    if apart < math.log1p(minimum_effect):
        return 2.0, -apart
    if 2 / math.comb(len(before) + len(after), len(before)) > LARGEST_P:
        return 1.0, -apart
    return float(mannwhitneyu(before, after).pvalue), -apart
