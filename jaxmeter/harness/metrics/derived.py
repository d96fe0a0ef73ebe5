"""Metrics that no probe measures: pure functions of a variant, its case, its siblings or its capture."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from statistics import median

from jaxmeter.document import numbers
from jaxmeter.harness.metrics import statistics
from jaxmeter.harness.metrics.across import count_looks, find_timing, subtract_means
from jaxmeter.harness.metrics.metric import Derived, Fault, Lack, Readable, Reading
from jaxmeter.harness.metrics.plausibility import (
    LARGEST,
    LONGEST_S,
    SHORTEST_S,
    at_both_levels,
    bound,
    divide_by_calibration,
    find_objection,
    keep_between,
    usable_size,
)
from jaxmeter.harness.metrics.statistics import Interval
from jaxmeter.harness.record.cases import NATIVE, Cost
from jaxmeter.harness.record.outcomes import Number, NumericsDetails, TimingDetails, TraceDetails
from jaxmeter.harness.record.trace_summary import TraceSummary
from jaxmeter.harness.traces.bound import HIGHEST_SHARE, Bound, BoundKind, find_bound, find_roofs
from jaxmeter.harness.traces.summary import find_busy_share

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


TOO_FEW_PAIRS = "in too few of its processes both variants were undisturbed"

NO_ITEMS = "its workload declares no items="

STAGES = ("trace_s", "lower_s", "compile_s", "first_call_s")
"""The way from a Python function to its first result."""


def is_peer(source: Readable) -> bool:
    """Return whether a variant is of another library, so not interleaved with the others: noise does not hit both."""
    return source.planned.mode == NATIVE


def is_baseline(source: Readable) -> bool:
    """Whether the case's speedups refer to this variant."""
    return source.planned.name == source.planned_case.baseline


def find_eager(source: Readable) -> Readable | None:
    """The same implementation as eager code, where the case has it."""
    wanted = (source.planned.implementation, "eager")
    names = [item.name for item in source.planned_case.variants if (item.implementation, item.mode) == wanted]
    return source.find(names[0]) if names else None


def read_log_ratios(source: Readable) -> tuple[float | None, ...]:
    """Return the log ratios to the baseline variant, by process.

    The baseline's own log ratio is 0, also where its time was not trusted: a paired ratio can still be valid. If the
    baseline was not timed, no variant has a ratio.
    """
    time = source.read("execution_s")
    if not time.has_number:
        return ()
    if is_baseline(source):
        return (0.0,) * len(time.values)
    return source.read("log_ratio").values


def compare_paired(variant: Readable, other: Readable) -> Interval | None:
    """How many times faster a variant is than another: the processes' ratios to the baseline, subtracted pair by pair.

    None also where either has no speedup: `find_withheld` says why. `doubt_ratio` says whether to trust it.
    """
    if find_withheld(variant, other) is not None:
        return None
    pairs = zip(read_log_ratios(variant), read_log_ratios(other), strict=False)
    known = [mine - theirs for mine, theirs in pairs if mine is not None and theirs is not None]
    if not known:
        return None
    shared = variant.pool.find_shared_of_ratio(math.fsum(known) / len(known), variant, other)
    mean = partial(statistics.speedup, borrowed=variant.pool.lend_to_ratio(variant, other), shared=shared)
    return bound(mean, known, variant.settings, looks=max(count_looks(variant), count_looks(other)))


def find_withheld(*sides: Readable) -> Fault | None:
    """Why the ratio of times of these is not given although they were timed; None where it is."""
    for side in sides:
        if objection := find_objection(side.outcomes):
            who = side.planned.name
            return Fault(Lack.WITHHELD, "speedup", "numerics", reason=f"{objection} ({who})")
    return None


def doubt_ratio(variant: Readable, other: Readable) -> str:
    """Return, for a person, why the ratio of two variants' times cannot be trusted; empty if it can.

    Interference hits both variants of a pair alike, with two exceptions. A peer has a process of its own. And variants
    may keep different numbers of processors busy: losing one processor slows two threads and not a single one.
    """
    sides = variant, other
    doubtful = any(map(_has_doubtful_ratios, sides))
    if not doubtful and not any(side.read("execution_s").contended for side in sides):
        return ""
    if any(map(is_peer, sides)):
        return "a peer is timed in a process of its own, and what disturbed the two met them unlike"
    less, more = sorted(side.read("parallelism").estimate or 0.0 for side in sides)
    if less and not statistics.agree(less, more, within=statistics.UNEQUALLY_PARALLEL):
        return (
            f"its variants keep {less:.1f} and {more:.1f} processors busy, and what disturbed them slowed them unlike"
        )
    # Two of which none is the baseline are a pair of their own: theirs with the baseline says nothing of it.
    return TOO_FEW_PAIRS if doubtful and any(map(is_baseline, sides)) else ""


def _has_doubtful_ratios(source: Readable) -> bool:
    timing = find_timing(source)
    return timing is not None and timing.doubtful_ratios


def derive_normalised(source: Readable) -> Derived:
    """Return a variant's time over the calibration loop next to it, times the run's median calibration loop."""
    time, reference, timing = source.read("execution_s"), source.pool.reference, find_timing(source)
    if not time.has_number:
        return Derived(fault=time.fault)
    if reference is None:
        return _not_normalised(source.pool.no_reference)
    calibration = source.read("calibration_s")
    if timing is None or timing.calibration != reference.identity:
        return _not_normalised(_describe_calibrations(timing, len(calibration.known), reference.identity))
    ratios = divide_by_calibration(source.read("over_calibration").values, time.values, calibration.values)
    values = tuple(
        None if ratio is None else keep_between(ratio * reference.calibration_s, SHORTEST_S, LONGEST_S)
        for ratio in ratios
    )
    if all(value is None for value in values):
        return _not_normalised("none of its processes has a calibration loop's time that can be")
    return Derived(values, time.contended, time.fault)


def _describe_calibrations(timing: TimingDetails | None, known: int, wanted: str) -> str:
    """Why a variant's processes have not the calibration loop of its run.

    Args:
      known: How many processes have the time of some calibration loop.
    """
    if timing is None or not known:
        return "its processes timed no calibration loop"
    if timing.calibration is not None:
        return f"its calibration loop is {timing.calibration}, that of the run {wanted}"
    if known < timing.processes:
        return f"{timing.processes - known} of its {timing.processes} processes timed no calibration loop"
    return "its processes timed different calibration loops"


def _not_normalised(reason: str) -> Derived:
    return Derived(fault=Fault(Lack.NOT_NORMALISED, "normalised_s", reason=reason))


def derive_speedup(source: Readable) -> Derived:
    """Over the baseline variant, by process."""
    baseline = source.find(source.planned_case.baseline)
    if baseline is None or is_baseline(source):
        return _undefined("speedup")
    times = source.read("execution_s"), baseline.read("execution_s")
    if (fault := _first_lacking(*times)) is not None:
        return Derived(fault=fault)
    if (withheld := find_withheld(source, baseline)) is not None:
        return Derived(fault=withheld)
    ratios = tuple(None if value is None else math.exp(value) for value in read_log_ratios(source))
    doubt = doubt_ratio(source, baseline)
    return Derived(ratios, contended=bool(doubt), doubt=doubt)


def derive_break_even(source: Readable) -> Derived:
    """Return after how many calls a jitted implementation has paid off against its eager code, as a range.

    The fewest calls follow from the upper bounds of the eager call's time, the speedup and the eager cold start, and
    the lower bound of jit's cold start. The most calls follow from the opposite bounds. If the speedup does not differ
    from 1, only the fewest calls are bounded: jit may never pay off.
    """
    eager = find_eager(source)
    if source.planned.mode != "jit" or eager is None:
        return _undefined("break_even_calls")
    readings = eager.read("execution_s"), eager.read("first_result_s"), source.read("first_result_s")
    call, eager_cold, jit_cold = (reading.interval for reading in readings)
    speedup, nothing = compare_paired(source, eager), Fault(Lack.NO_DIFFERENCE, "break_even_calls")
    doubt = doubt_ratio(source, eager)
    contended = readings[0].contended or bool(doubt)
    if call is None or eager_cold is None or jit_cold is None or speedup is None:
        lacking = _first_lacking(source.read("execution_s"), *readings)
        return Derived(fault=lacking or find_withheld(source, eager) or nothing)
    fewest = _count_at(call.high, speedup.high, eager_cold.high, jit_cold.low)
    calls = _count_at(call.estimate, speedup.estimate, eager_cold.estimate, jit_cold.estimate)
    if statistics.differs(speedup):
        if calls is None:
            return Derived(fault=Fault(Lack.NEVER, "break_even_calls"))
        most = _count_at(call.low, speedup.low, eager_cold.low, jit_cold.high)
        return Derived((calls,), contended, interval=Interval(fewest, calls, most, speedup.count), doubt=doubt)
    if calls is None or fewest is None or fewest == 1:
        return Derived(fault=nothing)
    return Derived((calls,), contended, interval=Interval(fewest, calls, None, speedup.count), doubt=doubt)


def _count_at(
    eager_s: float | None, speedup: float | None, eager_cold_s: float | None, jit_cold_s: float | None
) -> int | None:
    """The break-even of these costs, where there are all and jit ever pays."""
    if eager_s is None or speedup is None or eager_cold_s is None or jit_cold_s is None:
        return None
    return count_break_even(eager_s, eager_s / speedup, eager_cold_s, jit_cold_s)


def count_break_even(eager_s: float, jit_s: float, eager_cold_s: float, jit_cold_s: float) -> int | None:
    """Calls after which the jitted program has cost less time than eager code, both from a cold process.

    Args:
      eager_s, jit_s: One warm call.
      eager_cold_s, jit_cold_s: Everything until the first result, compilation included.
    Returns:
      The smallest whole number of calls, at least 1; None where jit never pays, since its call is not faster.
    """
    if eager_cold_s >= jit_cold_s and eager_s >= jit_s:
        return 1
    if eager_s <= jit_s:
        return None
    return math.ceil(1 + (jit_cold_s - eager_cold_s) / (eager_s - jit_s))


def derive_compile_total(source: Readable) -> Derived:
    """The stages before the first call, added up in each process."""
    return _add(source, STAGES[:-1])


def derive_first_result(source: Readable) -> Derived:
    """The stages that this mode has, added up in each process; there is none without a first call."""
    first_call = source.read(STAGES[-1])
    if not first_call.has_number:
        return Derived(fault=first_call.fault)
    return _add(source, [stage for stage in STAGES if source.read(stage).has_number])


def _add(source: Readable, stages: Sequence[str]) -> Derived:
    """The sum in each process; one that lacks a stage has no sum."""
    readings = [source.read(stage) for stage in stages]
    if (fault := _first_lacking(*readings)) is not None:
        return Derived(fault=fault)
    by_process = zip_longest(*(reading.values for reading in readings))
    return Derived(tuple(map(_sum, by_process)), fault=readings[0].fault)


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) if len(known) == len(values) else None


def derive_cache_saving(source: Readable) -> Derived:
    """The difference of two means, of processes of their own."""
    cold, cached = source.read("cold_s"), source.read("cached_s")
    if (fault := _first_lacking(cold, cached)) is not None:
        return Derived(fault=fault)
    saving = at_both_levels(
        source.settings, lambda confidence: subtract_means(cold.known, cached.known, confidence=confidence)
    )
    return Derived((saving.estimate,), fault=cold.fault, interval=saving)


def derive_capacity_share(source: Readable) -> Derived:
    """The plan over what programs may use of the device."""
    capacity = usable_size(source.environment.device_memory_bytes)
    return _divide("capacity_share", source.read("planned_peak_bytes"), capacity)


def derive_call_over_plan(source: Readable) -> Derived:
    """Measured peak memory over what was planned."""
    return _divide(
        "measured_over_planned", source.read("measured_peak_bytes"), source.read("planned_peak_bytes").estimate
    )


def derive_donation_share(source: Readable) -> Derived:
    """What donation saves, of what was planned."""
    return _divide("donation_share", source.read("donation_saves_bytes"), source.read("planned_peak_bytes").estimate)


def derive_flops_over_declared(source: Readable) -> Derived:
    """XLA counts what one device does, a cost what all do."""
    declared = _cost(source).flops
    return _divide("flops_over_declared", source.read("counted_flops"), declared, times=source.planned_case.devices)


def derive_bytes_over_declared(source: Readable) -> Derived:
    """As for operations."""
    declared = _cost(source).bytes
    return _divide("bytes_over_declared", source.read("counted_bytes"), declared, times=source.planned_case.devices)


def rate_of(metric: str, amount: Callable[[Cost], Number | None]) -> Callable[[Readable], Derived]:
    """A function that divides a declared amount by the execution time, process by process."""
    return lambda source: _divide_by_time(metric, amount(_cost(source)), source.read("execution_s"))


def derive_throughput(source: Readable) -> Derived:
    """Declared items over the execution time."""
    items = usable_size(source.planned_case.items)
    return _divide_by_time("items_per_s", items, source.read("execution_s"), NO_ITEMS)


def _divide_by_time(metric: str, declared: Number | None, time: Reading, without: str = "") -> Derived:
    """A declared amount over each process's time; its interval is that of the time, which it says in other words.

    Args:
      without: Why there is none where nothing is declared, for a person.
    """
    if declared is None or not 0 < declared < LARGEST:
        return Derived(fault=Fault(Lack.NOT_DEFINED, metric, reason=without))
    values = tuple(None if value is None else declared / value for value in time.values)
    derived = Derived(values, time.contended, time.fault)
    return replace(derived, interval=statistics.invert(declared, time.interval)) if values else derived


def _cost(source: Readable) -> Cost:
    return source.planned_case.cost or Cost()


def _divide(metric: str, above: Reading, below: Number | None, *, times: int = 1) -> Derived:
    """A reading, some times, over a positive number."""
    if above.estimate is None:
        return Derived(fault=above.fault)
    if below is None or not 0 < below < LARGEST:
        return _undefined(metric)
    return Derived((above.estimate * times / below,), above.contended, above.fault)


def _first_lacking(*readings: Reading) -> Fault | None:
    """Why the first has no number that has none."""
    return next((reading.fault for reading in readings if not reading.has_number), None)


def _undefined(metric: str) -> Derived:
    return Derived(fault=Fault(Lack.NOT_DEFINED, metric))
