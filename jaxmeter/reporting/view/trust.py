"""How far a run's numbers can be trusted: the smallest difference that they can tell, and what was noisy."""

from __future__ import annotations

from collections.abc import Sequence

from jaxmeter.harness.metrics.precision import describe_smallest, explain_scatter, list_smallest, suggest_more
from jaxmeter.harness.metrics.reading import Case
from jaxmeter.harness.metrics.statistics import Interval

from ..numbers import SPACE
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

    The text also says how to detect smaller differences, and how many speedups scatter far more than the others.

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
    wild = sum(bool(explain_scatter(variant)) for variant in variants)
    scattered = (
        f"{counted(wild, 'speedup')} {'scatters' if wild == 1 else 'scatter'} far more than the others; the notes of "
        f"{'its variant' if wild == 1 else 'their variants'} explain why."
    )
    parts = (
        f"{describe_smallest(smallest).replace(' %', f'{SPACE}%') or 'No speedup has an interval'}; {noisy}.",
        suggest_more(smallest, timed[0].settings),
        scattered if wild else "",
    )
    return " ".join(filter(None, parts))
