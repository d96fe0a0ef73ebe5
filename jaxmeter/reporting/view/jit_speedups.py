"""What jit is worth: its speedup over eager code, wherever an implementation was timed both ways."""

from __future__ import annotations

import math
import statistics as summaries
from collections.abc import Iterable, Sequence

from jaxmeter.harness.metrics.derived import compare_paired, doubt_ratio, find_eager
from jaxmeter.harness.metrics.reading import Case
from jaxmeter.harness.metrics.statistics import Interval

from .. import numbers
from ..text import counted
from .headlines import count_sides


def compare_jit_with_eager(cases: Iterable[Case]) -> tuple[tuple[Interval, bool], ...]:
    """The speedup of jit over eager, and whether to trust it, for every implementation that was timed both ways."""
    pairs = []
    for case in cases:
        by_name = {(one.planned.implementation, one.planned.mode): one for one in case.shown}
        for (_, mode), variant in by_name.items():
            eager = find_eager(variant)
            if mode != "jit" or eager is None:
                continue
            speedup = compare_paired(variant, eager)
            if speedup is not None:
                pairs.append((speedup, not doubt_ratio(variant, eager)))
    return tuple(pairs)


def describe_jit(cases: Iterable[Case]) -> str:
    """`jit against eager in 36 pairs: 31 faster, 1 slower, 4 undecided (median 8.7× [8.1, 9.3])`.

    Those that are not to be trusted are counted apart, and are not in the median.
    """
    pairs = compare_jit_with_eager(cases)
    if not pairs:
        return "no pair of eager and jit was measured"
    trusted = [speedup for speedup, is_trusted in pairs if is_trusted]
    doubted = f", {len(pairs) - len(trusted)} not to be trusted" if len(trusted) < len(pairs) else ""
    among = f"jit against eager in {counted(len(pairs), 'pair')}, compiling apart"
    if not trusted:
        return f"{among}: none to be trusted"
    middle = " ".join(part for part in numbers.speedup_with_bounds(_find_middle(trusted)) if part != numbers.MISSING)
    return f"{among}: {count_sides(trusted)}{doubted} (median {middle})"


def _find_middle(pairs: Sequence[Interval]) -> Interval:
    """The median speedup. It lies between the median bounds wherever each speedup lies between its own."""
    lows = [0.0 if pair.low is None else pair.low for pair in pairs]
    highs = [math.inf if pair.high is None else pair.high for pair in pairs]
    return Interval(
        summaries.median(lows), summaries.median(pair.estimate for pair in pairs), summaries.median(highs), len(pairs)
    )
