"""Metrics of a profiler capture: shares of a traced step, scaled by the timed median, and rates next to peaks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from statistics import median

from jaxmeter.document import numbers
from jaxmeter.harness.metrics import statistics
from jaxmeter.harness.metrics.metric import Derived, Fault, Lack, Readable, Reading
from jaxmeter.harness.metrics.plausibility import LARGEST
from jaxmeter.harness.record.outcomes import NumericsDetails, TraceDetails
from jaxmeter.harness.record.trace_summary import TraceSummary
from jaxmeter.harness.traces.bound import HIGHEST_SHARE, Bound, BoundKind, find_bound, find_roofs
from jaxmeter.harness.traces.typical import find_busy_share

SLOWED_DOWN, SPED_UP = 1.25, 0.8
"""Traced step over timed step beyond which shares are of the traced step alone, and the timed one is not divided. A
traced step that is much shorter than the timed one is another, as of code that compiles in some calls only."""

TRACED_OPERATION_S = 0.4e-6
"""What recording one operation takes. Source: 504 operations a step made a step of 16 µs one of 190."""

MOST_TRACING = 0.1
"""Share of the timed step that recording may take before a reader is warned."""

MOSTLY_BUSY, MOSTLY_IDLE = 0.7, 0.3
"""Shares of a traced step in which the device is busy, beyond which a bound is named although tracing slows it down."""


def find_trace(source: Readable) -> TraceSummary | None:
    """Return what the variant's capture shows; None without one, or where it cannot be relied on."""
    outcome = source.outcomes.get("trace")
    details = None if outcome is None else outcome.details
    summary = details.summary if isinstance(details, TraceDetails) else None
    return summary if summary is not None and summary.is_healthy and summary.devices and summary.traced_s else None


def find_slowdown(source: Readable) -> float | None:
    """Return the traced step over the timed one; None where either is missing."""
    summary, timed = find_trace(source), source.read("execution_s").estimate
    return None if summary is None or timed is None or timed <= 0 else median(summary.traced_s) / timed


def is_slowed_down(source: Readable) -> bool:
    """Whether the traced step is so unlike the timed one that its shares are of the traced step alone."""
    slowdown = find_slowdown(source)
    return slowdown is not None and not SPED_UP <= slowdown <= SLOWED_DOWN


def describe_tracing(source: Readable) -> str:
    """Warn where tracing may take more of a step than what it shows; empty where it does not."""
    summary, timed_s = find_trace(source), source.read("execution_s").estimate
    if summary is None or not timed_s or not summary.traced_s:
        return ""
    executions = summary.executions / len(summary.traced_s)
    share = executions * TRACED_OPERATION_S / timed_s
    if share > MOST_TRACING:
        return (
            f"tracing dominates: recording {executions:.0f} operations a step takes some {numbers.percent(share)} of "
            "the timed step"
        )
    slowdown = find_slowdown(source)
    if slowdown is None or not is_slowed_down(source):
        return ""
    return f"a traced step takes {slowdown:.2g}× as long as a timed one: shares are of the traced step"


def find_bound_of(source: Readable) -> Bound | None:
    """Return what the variant's step is bound by; None without a capture.

    Also return None if tracing slowed the step down so much that its shares differ from those of the timed step. A step
    whose device was busy for nearly all of the time, or for little of it, still has a bound.
    """
    summary = find_trace(source)
    if summary is None or _is_another_step(summary, find_slowdown(source)):
        return None
    return find_bound(summary, find_roofs(summary, source.environment))


def _is_another_step(summary: TraceSummary, slowdown: float | None) -> bool:
    """Return whether the traced step is so unlike the timed one that its shares bound nothing."""
    if slowdown is None or SPED_UP <= slowdown <= SLOWED_DOWN:
        return False
    share = find_busy_share(summary)
    return slowdown < SPED_UP or (share is not None and MOSTLY_IDLE <= share <= MOSTLY_BUSY)


def describe_bound_of(source: Readable) -> str:
    """Return `bound by dispatch (58 % of the step)`; empty without a capture."""
    summary, bound, slowdown = find_trace(source), find_bound_of(source), find_slowdown(source)
    if summary is None:
        return ""
    if bound is None:
        return f"bound unknown: {_explain_unknown(summary, slowdown)}"
    is_slower = slowdown is not None and is_slowed_down(source)
    of_step = f"of the traced step, {slowdown:.2g}× as long as the timed one" if is_slower else "of the step"
    if bound.kind is BoundKind.NOTHING:
        share = f"{numbers.percent(bound.share)}{f' {of_step}' if is_slower else ''}"
        return f"no part dominates (largest: {bound.largest.value}, {share})"
    return f"bound by {bound.kind.value} ({numbers.percent(bound.share)} {of_step}{_describe_rate(bound)})"


def _describe_rate(bound: Bound) -> str:
    """Return `, at 41 % of the peak FLOP/s` where a roof bounds the operations."""
    rates = {
        BoundKind.ARITHMETIC: (bound.of_peak_flops, "FLOP/s"),
        BoundKind.BANDWIDTH: (bound.of_peak_bandwidth, "bandwidth"),
    }
    share, of = rates.get(bound.kind, (None, ""))
    return "" if share is None else f", at {numbers.percent(share)} of the peak {of}"


def _explain_unknown(summary: TraceSummary, slowdown: float | None) -> str:
    """Return `a traced step takes 2.1× as long as a timed one, with its device busy for 55 %`."""
    if not summary.ledger:
        return "the capture does not show where the step's wall time goes"
    if slowdown is None or not _is_another_step(summary, slowdown):
        return "the profiler's Python tracer takes time of the step"
    share = None if slowdown < SPED_UP else find_busy_share(summary)
    busy = "" if share is None else f", with its device busy for {numbers.percent(share)}"
    return f"a traced step takes {slowdown:.2g}× as long as a timed one{busy}"


def derive_busy_share(source: Readable) -> Derived:
    """Of the busiest device, of the median step."""
    summary = find_trace(source)
    share = None if summary is None else find_busy_share(summary)
    return _without(source, "busy_share") if share is None else Derived((share,))


def derive_slowdown(source: Readable) -> Derived:
    """The traced step over the timed one."""
    slowdown = find_slowdown(source)
    return _without(source, "traced_over_timed") if slowdown is None else Derived((slowdown,))


def derive_device_time(source: Readable) -> Derived:
    """By the device's own clock; of the host's processor its share of the timed step, where tracing changes little."""
    summary = find_trace(source)
    share = None if summary is None else find_busy_share(summary)
    if summary is None or share is None or summary.busiest is None:
        return _without(source, "device_busy_s")
    if summary.platform != "cpu":
        return Derived((median(summary.busiest.busy_s),))
    slowdown, time = find_slowdown(source), source.read("execution_s")
    if slowdown is None or time.estimate is None:
        return Derived(fault=time.fault or Fault(Lack.NO_VALUE, "device_busy_s"))
    if is_slowed_down(source):
        reason = f"a traced step takes {slowdown:.2g}× as long as a timed one: the shares are of the traced step"
        return Derived(fault=Fault(Lack.WITHHELD, "device_busy_s", reason=reason))
    return Derived((share * time.estimate,), time.contended)


def derive_launch_delay(source: Readable) -> Derived:
    """Median over the kernels of all steps."""
    summary = find_trace(source)
    delay = None if summary is None else summary.launch_delay_s
    return _without(source, "launch_delay_s") if delay is None else Derived((delay,))


def _without(source: Readable, metric: str) -> Derived:
    """No number: the probe's own end says why, or the capture's health."""
    outcome = source.outcomes.get("trace")
    if outcome is None:
        lack = Lack.NOT_LOOKED if "trace" in source.settings.probes else Lack.NOT_ASKED
        return Derived(fault=Fault(lack, metric, "trace"))
    details = outcome.details
    summary = details.summary if isinstance(details, TraceDetails) else None
    fatal = () if summary is None else tuple(finding.text for finding in summary.findings if finding.is_fatal)
    if fatal:
        return Derived(fault=Fault(Lack.NO_VALUE, metric, "trace", reason=f"the capture gives no number: {fatal[0]}"))
    return Derived(fault=Fault(Lack.NO_VALUE, metric, "trace", outcome))


DECLARED = "declared"

ABOVE_PEAK = "above the peak: its declared cost or the peak is wrong"
ABOVE_BANDWIDTH = "above the memory's peak: its data stays in a cache, or the declared bytes or the peak are wrong"


def find_cost(source: Readable, what: str) -> tuple[float, str] | None:
    """Return FLOPs or bytes of one call and who says so: the workload, else what the program's own HLO gives.

    Args:
      what: `flops` or `bytes`.
    """
    cost = source.planned_case.cost
    declared = None if cost is None else getattr(cost, what)
    if declared is not None and 0 < declared < LARGEST:
        return float(declared), DECLARED
    summary = find_trace(source)
    counted = None if summary is None else getattr(summary, what)
    if summary is None or counted is None or not 0 < counted < LARGEST:
        return None
    return float(counted) * len(summary.devices), "counted from the program"


def find_peak_flops(source: Readable) -> float | None:
    """Return the peak of one device in the format that the case's products are computed in; None without one."""
    peaks: Mapping[str, float] = source.environment.peak_flops
    return peaks.get(find_product_format(source) or "")


def find_product_format(source: Readable) -> str | None:
    """Return the format that the case's products are computed in; None if it is unknown, or there are several."""
    summary = find_trace(source)
    formats = () if summary is None else summary.product_formats
    # Of several formats nobody can say which peak holds; of a program without products the declared one does.
    name = formats[0] if len(formats) == 1 else None if formats else source.planned_case.params.get("dtype")
    if name != "float32":
        return None if name is None else str(name)
    numerics = source.outcomes.get("numerics")
    details = None if numerics is None else numerics.details
    products = details.products if isinstance(details, NumericsDetails) else None
    return products or "float32"


def derive_flops_share(source: Readable) -> Derived:
    """Achieved FLOP/s over the peak of all devices of the case."""
    return _derive(source, "flops", find_peak_flops(source), ABOVE_PEAK)


def derive_bandwidth_share(source: Readable) -> Derived:
    """Achieved B/s over the peak of all devices' memories."""
    return _derive(source, "bytes", source.environment.peak_bytes_per_s, ABOVE_BANDWIDTH)


def derive_intensity(source: Readable) -> Derived:
    """FLOPs over bytes."""
    flops, moved = find_cost(source, "flops"), find_cost(source, "bytes")
    if flops is None or moved is None:
        return Derived(fault=Fault(Lack.NOT_DEFINED, "operational_intensity"))
    return Derived((flops[0] / moved[0],))


def _derive(source: Readable, what: str, peak: float | None, above: str) -> Derived:
    name = "flops_share" if what == "flops" else "bandwidth_share"
    cost = find_cost(source, what)
    if cost is None or not peak:
        reason = (
            f"its workload declares no {what}, and no capture gives them" if cost is None else _explain(source, what)
        )
        return Derived(fault=Fault(Lack.NOT_DEFINED, name, reason=reason))
    time = _find_time(source)
    devices = 1 if source.environment.device_kind == "cpu" else _count_devices(source, cost[1])
    at_peak_s = cost[0] / (peak * devices)
    values = tuple(None if value is None else at_peak_s / value for value in time.values)
    interval = statistics.invert(at_peak_s, time.interval) if values else None
    derived = Derived(values, time.contended, time.fault, interval=interval)
    known = [value for value in values if value is not None]
    is_above = bool(known) and max(known) > HIGHEST_SHARE
    return replace(derived, doubt=above) if is_above else derived


def _explain(source: Readable, what: str) -> str:
    """Return why there is no peak."""
    here = source.environment
    if what == "bytes" or not here.peak_flops:
        return f"no peak is known of its device ({here.device_kind})"
    name = find_product_format(source)
    return f"no peak is known of {name} products" if name else "in which format its products are computed is not known"


def _count_devices(source: Readable, said_by: str) -> int:
    """How many devices' peaks a cost is held against: those that the case asks for, or that the program ran on."""
    summary = find_trace(source)
    return source.planned_case.devices if said_by == DECLARED or summary is None else len(summary.devices)


def _find_time(source: Readable) -> Reading:
    """Busy time where the device has a clock of its own; else the timed call."""
    summary = find_trace(source)
    has_clock = summary is not None and summary.platform != "cpu"
    busy = source.read("device_busy_s") if has_clock else None
    return busy if busy is not None and busy.has_number else source.read("execution_s")
