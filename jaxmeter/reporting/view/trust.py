"""How far a run's numbers can be trusted: the smallest difference that they can tell, and what was noisy."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

from jaxmeter.harness.metrics.metric import Reading
from jaxmeter.harness.metrics.pool import list_sides
from jaxmeter.harness.metrics.reading import Case, Variant
from jaxmeter.harness.metrics.statistics import MINIMUM_EFFECT, Interval, find_shared_half

from .. import numbers
from ..text import counted

WIDE = "wide"
"""What follows a number that tells little."""

VAGUE = 2.0
"""An interval whose bounds are further apart than this factor is said to be wide."""


def is_vague(interval: Interval | None) -> bool:
    """Whether the bounds are further apart than a factor of two."""
    if interval is None or interval.low is None or interval.high is None:
        return False
    return interval.high > VAGUE * max(interval.low, 0.0)


def describe_trust(cases: Sequence[Case]) -> str:
    """Return the smallest detectable differences of one run's speedups, and how many of its times are contended.

    Args:
      cases: Of one machine.
    """
    variants = [variant for case in cases for variant in case.shown]
    smallest = list(list_smallest(variants))
    timed = [variant for variant in variants if variant.read("execution_s").interval is not None]
    if not timed:
        return "No time was measured."
    contended = sum(variant.read("execution_s").contended for variant in timed)
    noisy = (
        f"{contended} of {counted(len(timed), 'time')} {'is' if contended == 1 or len(timed) == 1 else 'are'} contended"
    )
    return f"{_describe_smallest(smallest)}; {noisy}."


def _describe_smallest(smallest: Sequence[float]) -> str:
    if not smallest:
        return "No speedup has an interval"
    if len(smallest) == 1:
        return f"Smallest detectable difference of its one speedup: {_write_difference(smallest[0])}"
    tenths = statistics.quantiles(smallest, n=10, method="inclusive")
    median, most = map(_write_difference, (tenths[4], tenths[8]))
    return f"Smallest detectable difference of {len(smallest)} speedups: median {median}, 90th percentile {most}"


def _write_difference(share: float) -> str:
    """Return `13 %`, or `a factor of 15`."""
    return numbers.percent(share) if share < 1 else f"a factor of {numbers.speedup(1 + share).removesuffix('×')}"


def list_smallest(variants: Iterable[Variant]) -> Iterable[float]:
    """Yield the smallest detectable difference of each speedup: half the width of its interval for verdicts."""
    for variant in variants:
        speedup = variant.read("speedup")
        if not variant.is_baseline and (half := _find_half(speedup, variant)) is not None:
            yield max(MINIMUM_EFFECT, half)


def _find_half(speedup: Reading, variant: Variant) -> float | None:
    """With what two runs of a speedup of 1 differ by, since none is what a difference is told from."""
    interval = speedup.verdict_interval
    if interval is None or interval.low is None or interval.high is None or interval.estimate <= 0:
        return None
    half = math.log(interval.high / interval.estimate)
    beyond = max(0.0, speedup.shared - variant.pool.find_shared_of_ratio(0.0, *list_sides(variant)))
    of_each_look = 1 - (1 - variant.settings.confidence) / speedup.looks
    return math.expm1(math.sqrt(max(0.0, half**2 - find_shared_half(beyond, of_each_look) ** 2)))
