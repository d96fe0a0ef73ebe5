"""The current estimate of a case during a run, with its half-width."""

from __future__ import annotations

import math
from collections.abc import Iterator

from jaxmeter.document import numbers
from jaxmeter.harness.metrics.reading import Variant, read_case
from jaxmeter.harness.metrics.statistics import Interval
from jaxmeter.harness.record import CaseRecord, Manifest


def describe_estimate(manifest: Manifest, record: CaseRecord) -> str:
    """Return `scan:jit 3.1× ± 8 %`: the speedup of a variant that the suite's answer names, or else the first speedup.

    For a case without a speedup, return the time of a variant, such as `step:jit 12.3 ms ± 4 %`; empty without a time.
    The half-width is that of the shown interval, from the processes of this case alone.
    """
    planned = next(case for case in manifest.cases if case.id == record.id)
    case = read_case(planned, record, manifest.environments[planned.platform], manifest.settings)
    answering = () if case.planned.answer is None else case.planned.answer.variants
    variants = sorted(case.shown, key=lambda variant: variant.planned.name not in answering)
    return next(_list_estimates(variants), "")


def _list_estimates(variants: list[Variant]) -> Iterator[str]:
    """Yield each speedup, then each time."""
    for variant in variants:
        if not variant.is_baseline and (speedup := variant.read("speedup").interval) is not None:
            yield f"{variant.planned.name} {numbers.speedup(speedup.estimate)}{_write_half(speedup)}"
    for variant in variants:
        if (time := variant.read("execution_s").interval) is not None:
            yield f"{variant.planned.name} {numbers.time(time.estimate)}{_write_half(time)}"


def describe_seconds(seconds: float) -> str:
    """Return an approximate duration as text, such as `40 s` or `12 min`."""
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _write_half(interval: Interval) -> str:
    """Return the half-width above the estimate as text; empty without bounds."""
    if interval.high is None or not math.isfinite(interval.high) or interval.estimate <= 0:
        return ""
    return f" ± {numbers.percent(interval.high / interval.estimate - 1)}"
