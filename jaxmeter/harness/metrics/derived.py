"""Metrics that no probe measures: each a pure function of what was read of a variant, its case and its siblings."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest

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
from jaxmeter.harness.record.outcomes import Number, TimingDetails

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
