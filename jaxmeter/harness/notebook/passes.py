"""How one variant compares with another within one process: the ratios of their blocks, paired pass by pass."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from jaxmeter.document import numbers
from jaxmeter.harness.metrics.statistics import find_block_time
from jaxmeter.harness.record import ProcessRecord

CONFIDENCE = 0.95

FEWEST_PASSES = 6
"""Fewest passes whose ratios have an interval: of 5, even the smallest and the largest hold the median with 94 %."""


@dataclass(frozen=True)
class Ratio:
    """A speedup within one process, dimensionless; above 1 is faster.

    Args:
      low, high: Bounds of the 95 % confidence interval of the median.
      passes: How many pairs it is made of.
    """

    low: float
    estimate: float
    high: float
    passes: int

    @property
    def half_width(self) -> float:
        """Half the interval, relative to the estimate."""
        return (self.high - self.low) / 2 / self.estimate

    def __str__(self) -> str:
        return " ".join(numbers.speedup_with_bounds(self))


def list_ratios(process: ProcessRecord, baseline: str, variant: str) -> list[float]:
    """Return how many times faster a variant is than the baseline in each pass that they share, in rising order."""
    blocks = {
        item.variant: {block.pass_number: find_block_time(block.samples_s) for block in item.blocks}
        for item in process.variants
    }
    if baseline not in blocks or variant not in blocks:
        return []
    pairs = [
        (blocks[baseline][number], time_s) for number, time_s in blocks[variant].items() if number in blocks[baseline]
    ]
    return sorted(before / after for before, after in pairs if before > 0 and after > 0)


def compare_passes(process: ProcessRecord, baseline: str, variant: str) -> Ratio | None:
    """Return how many times faster a variant is than the baseline; None where they share fewer than FEWEST_PASSES.

    The estimate is the median over passes of the paired ratio, its interval that of the sign test: it supposes no
    distribution. It covers what varies within this process only.

    Source: Conover, Practical Nonparametric Statistics, 3rd edition, 1999, section 3.2.
    """
    ratios = list_ratios(process, baseline, variant)
    rank = find_rank(len(ratios))
    if rank is None:
        return None
    return Ratio(ratios[rank], statistics.median(ratios), ratios[-1 - rank], len(ratios))


def find_rank(count: int) -> int | None:
    """Return the largest rank, from 0, whose value and its mirror hold the median with 95 % confidence.

    None where even the smallest and the largest of so many values do not.
    """
    outside, found = 0.0, None
    for rank in range(count // 2):
        outside += 2 * math.comb(count, rank) / 2**count
        if 1 - outside < CONFIDENCE:
            break
        found = rank
    return found
