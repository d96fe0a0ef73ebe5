"""Whether the times of a case agree with its speedups: two numbers side by side must not contradict each other."""

from __future__ import annotations

from jaxmeter.harness.metrics.metric import Readable

TIMES = ("execution_s", "normalised_s")
"""Metrics that are shown as the time of a variant."""


def find_disagreement(source: Readable, metric: str) -> str:
    """Return why a variant's time is at odds with a speedup, for a person; empty where the two agree.

    They disagree where the baseline variant's time over the variant's lies outside the 95 % confidence interval of the
    speedup. Then both times have the reason, the baseline variant's for the first variant that it disagrees with.

    Args:
      metric: One of `TIMES`.
    """
    case = source.planned_case
    if source.planned.name != case.baseline:
        return _compare(source.find(case.baseline), source, metric)
    others = (source.find(variant.name) for variant in case.variants if variant.name != case.baseline)
    return next(filter(None, (_compare(source, other, metric) for other in others)), "")


def _compare(baseline: Readable | None, variant: Readable | None, metric: str) -> str:
    """The reason for two times whose quotient lies outside the interval of the speedup."""
    if baseline is None or variant is None:
        return ""
    times, speedup = (baseline.read(metric).estimate, variant.read(metric).estimate), variant.read("speedup").interval
    if speedup is None or speedup.low is None or speedup.high is None or times[0] is None or not times[1]:
        return ""
    quotient = times[0] / times[1]
    if speedup.low <= quotient <= speedup.high:
        return ""
    return (
        f"the times of {baseline.planned.name} and {variant.planned.name} give {quotient:.3g}×, outside the speedup's "
        f"interval [{speedup.low:.3g}, {speedup.high:.3g}]: a time is of the quiet processes, the speedup of all "
        f"pairs, in which both met the same interference; trust the speedup"
    )
