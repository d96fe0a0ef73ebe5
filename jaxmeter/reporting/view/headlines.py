"""What may lead a page: of many numbers those that are told apart, by the bound that is nearer to no difference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from jaxmeter.harness.metrics.reading import Case
from jaxmeter.harness.metrics.statistics import Interval, differs

from ..numbers import speedup_with_bounds
from .doubts import name_traps
from .names import name_variant

T = TypeVar("T")


def count_sides(ratios: Iterable[Interval]) -> str:
    """`31 faster, 1 slower, 4 undecided`: of speedups, above 1 is faster."""
    sides = [(ratio.estimate > 1) if differs(ratio) else None for ratio in ratios]
    return f"{sides.count(True)} faster, {sides.count(False)} slower, {sides.count(None)} undecided"


def find_surest_speedup(speedups: Iterable[tuple[Interval, T]]) -> tuple[Interval, T] | None:
    """The speedup that is surely the largest; None where none is told apart from 1.

    By the lower bound. The largest estimate would be the luckiest: the wider its interval, the more often it leads.
    """
    sure = [
        (speedup, what)
        for speedup, what in speedups
        if speedup.low is not None and speedup.low > 1 and differs(speedup)
    ]
    return max(sure, key=lambda pair: pair[0].low or 0.0, default=None)


def describe_largest_speedup(cases: Sequence[Case]) -> str:
    """`Largest speedup over a baseline variant: 41× [40, 43], ….`; empty where nothing was paired with one."""
    found = [(variant.read("speedup"), variant) for case in cases for variant in case.shown]
    if not any(speedup.interval for speedup, _ in found):
        return ""
    speedups = [
        (speedup.interval, one)
        for speedup, one in found
        if speedup.interval is not None and not speedup.contended and not one.is_peer and not name_traps(one)
    ]
    if not speedups:
        return "No speedup over a baseline variant is to be trusted."
    surest = find_surest_speedup(speedups)
    if surest is None:
        return f"No speedup over a baseline variant: {count_sides(speedup for speedup, _ in speedups)}."
    largest, variant = surest
    return f"Largest speedup: {' '.join(speedup_with_bounds(largest))}, {name_variant(variant)}."
