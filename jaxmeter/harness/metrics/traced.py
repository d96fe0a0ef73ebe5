"""Metrics that a profiler capture gives: shares of a traced step, and the timed median that gives them their scale.

Tracing slows a step down, so its wall time is no time of the program. Device times of a GPU or TPU are by the device's
own clock, and hold.
"""

from __future__ import annotations

from statistics import median

from jaxmeter.document import numbers
from jaxmeter.harness.metrics.metric import Derived, Fault, Lack, Readable
from jaxmeter.harness.record.outcomes import TraceDetails
from jaxmeter.harness.record.trace_summary import TraceSummary
from jaxmeter.harness.traces.bound import Bound, BoundKind, find_bound
from jaxmeter.harness.traces.roofline import find_roofs
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
