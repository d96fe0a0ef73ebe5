"""What may lead a page: of many numbers those that are told apart, by the bound that is nearer to no difference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from harness.record.statistics import Interval, differs

from ..numbers import gain_with_bounds
from .cases import Case
from .doubts import name_traps
from .names import name_variant

T = TypeVar("T")


def count_sides(ratios: Iterable[Interval]) -> str:
    """`31 faster, 1 slower, 4 undecided`: of gains, above 1 is faster."""
    sides = [(ratio.estimate > 1) if differs(ratio) else None for ratio in ratios]
    return f"{sides.count(True)} faster, {sides.count(False)} slower, {sides.count(None)} undecided"


def find_surest_gain(gains: Iterable[tuple[Interval, T]]) -> tuple[Interval, T] | None:
    """The gain that is surely the largest; None where none is told apart from 1.

    By the lower bound. The largest estimate would be the luckiest: the wider its interval, the more often it leads.
    """
    sure = [(gain, what) for gain, what in gains if gain.low is not None and gain.low > 1 and differs(gain)]
    return max(sure, key=lambda pair: pair[0].low or 0.0, default=None)


def describe_largest_gain(cases: Sequence[Case]) -> str:
    """`Largest gain over a baseline variant: 41× [40, 43], ….`; empty where nothing was paired with one."""
    found = [(variant.read("speedup"), variant) for case in cases for variant in case.variants]
    if not any(gain.interval for gain, _ in found):
        return ""
    gains = [
        (gain.interval, one)
        for gain, one in found
        if gain.interval is not None and not gain.contended and not one.is_peer and not name_traps(one)
    ]
    if not gains:
        return "No gain over a baseline variant is to be trusted."
    surest = find_surest_gain(gains)
    if surest is None:
        return f"No gain over a baseline variant: {count_sides(gain for gain, _ in gains)}."
    largest, variant = surest
    return f"Largest gain: {' '.join(gain_with_bounds(largest))}, {name_variant(variant)}."
