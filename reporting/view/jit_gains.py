"""What jit is worth: its gain over eager code, wherever an implementation was timed both ways."""

from __future__ import annotations

import statistics as summaries
from collections.abc import Iterable

from harness.record.derived import compare_paired, find_eager
from harness.record.statistics import Interval, differs

from .. import numbers
from ..text import counted
from .cases import Case


def compare_jit_with_eager(cases: Iterable[Case]) -> tuple[Interval, ...]:
    """The gain of jit over eager, for every implementation that was timed both ways in the same case."""
    pairs = []
    for case in cases:
        by_name = {(one.planned.implementation, one.planned.mode): one for one in case.variants}
        for (_, mode), variant in by_name.items():
            eager = find_eager(variant)
            gain = compare_paired(variant, eager) if mode == "jit" and eager is not None else None
            if gain is not None:
                pairs.append(gain)
    return tuple(pairs)


def describe_jit(cases: Iterable[Case], *, begins: bool = False) -> str:
    """`jit beats eager in 12 of 14 measured pairs (median 8.7×)`.

    Args:
      begins: Whether a sentence begins with it.
    """
    pairs = compare_jit_with_eager(cases)
    if not pairs:
        return f"{'No' if begins else 'no'} pair of eager and jit was measured"
    wins = sum(differs(pair) and pair.estimate > 1 for pair in pairs)
    middle = summaries.median(pair.estimate for pair in pairs)
    return f"jit beats eager in {wins} of {counted(len(pairs), 'measured pair')} (median {numbers.gain(middle)})"
