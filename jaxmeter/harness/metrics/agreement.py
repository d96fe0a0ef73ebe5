"""Whether the times of a case agree with its speedups: two numbers side by side must not contradict each other."""

from __future__ import annotations

from collections.abc import Sequence

from jaxmeter.harness.metrics.metric import Readable

TIMES = ("execution_s", "normalised_s")
"""Metrics that are shown as the time of a variant."""

OF_PROCESSES = "it compares both variants in the same processes"
OF_PASSES = "it compares both variants in the same passes"
"""Why a speedup is more reliable than two times: across processes, and within one."""


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
    if baseline is None or variant is None or (speedup := variant.read("speedup").interval) is None:
        return ""
    names, times_s = zip(*((one.planned.name, one.read(metric).estimate) for one in (baseline, variant)), strict=True)
    return describe_disagreement(names, times_s, (speedup.low, speedup.high), OF_PROCESSES)


def describe_disagreement(
    names: Sequence[str], times_s: Sequence[float | None], speedup: Sequence[float | None], why: str
) -> str:
    """Return the reason for two times whose quotient lies outside the interval of the speedup, for a person.

    It is empty where the times agree with the speedup, and where a time or a bound is missing.

    Args:
      names, times_s: Of the baseline variant and of the variant.
      speedup: The bounds of its interval.
      why: Why the speedup is more reliable.
    """
    (baseline_s, variant_s), (low, high) = times_s, speedup
    if low is None or high is None or not baseline_s or not variant_s:
        return ""
    quotient = baseline_s / variant_s
    if low <= quotient <= high:
        return ""
    return (
        f"the times of {names[0]} and {names[1]} give {quotient:.3g}×, outside the speedup's interval "
        f"[{low:.3g}, {high:.3g}]; trust the speedup: {why}"
    )
