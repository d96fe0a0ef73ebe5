"""Metrics that no probe measures: each a pure function of what was read of a variant, its case and its siblings."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import zip_longest

from harness.record import statistics
from harness.record.cases import NATIVE, Cost
from harness.record.guards import LARGEST, bound, usable_size
from harness.record.looks import count_looks, find_timing
from harness.record.metric import Derived, Fault, Lack, Readable, Reading
from harness.record.outcomes import Number
from harness.record.statistics import Interval

STAGES = ("trace_s", "lower_s", "compile_s", "first_call_s")
"""The way from a Python function to its first result."""

UNLIKE_PARALLELISM = 0.2
"""Sides that keep processors busy more unlike than by this share are slowed unlike by a lost one. Of one program twice
in a process, the busiest launches differed by up to 0.1 (12 cases on two busy cores, 3 launches each). A thread more is
at least 0.2 of up to five."""


def is_peer(source: Readable) -> bool:
    """Whether it is of another library, and not timed beside the others: a busy moment does not hit both."""
    return source.planned.mode == NATIVE


def is_baseline(source: Readable) -> bool:
    """Whether the case's speed-ups refer to this variant."""
    return source.planned.name == source.planned_case.baseline


def find_eager(source: Readable) -> Readable | None:
    """The same implementation as eager code, where the case has it."""
    wanted = (source.planned.implementation, "eager")
    names = [one.name for one in source.planned_case.variants if (one.implementation, one.mode) == wanted]
    return source.find(names[0]) if names else None


def read_log_ratios(source: Readable) -> tuple[float | None, ...]:
    """By launch, against the baseline variant; the baseline itself is 0 where it was timed."""
    time = source.read("execution_s")
    if time.interval is None:
        return ()
    if is_baseline(source):
        return tuple(None if value is None else 0.0 for value in time.values)
    return source.read("log_ratio").values


def compare_paired(one: Readable, other: Readable) -> Interval | None:
    """How many times faster the one is: the launches' ratios against the baseline, subtracted pair by pair.

    Whether it can be trusted, `doubt_ratio` tells.
    """
    pairs = zip(read_log_ratios(one), read_log_ratios(other), strict=False)
    known = [mine - theirs for mine, theirs in pairs if mine is not None and theirs is not None]
    if not known:
        return None
    return bound(statistics.speedup, known, one.settings, looks=max(count_looks(one), count_looks(other)))


def doubt_ratio(one: Readable, other: Readable) -> str:
    """Why the ratio of their times is not to be trusted, for a person; empty where it is.

    What disturbs a launch hits both sides of a pair alike, unless one is a peer, which has a process of its own, or one
    keeps more processors busy: a lost one halves two threads and leaves one alone.
    """
    if not any(side.read("execution_s").contended for side in (one, other)):
        return ""
    if is_peer(one) or is_peer(other):
        return "a peer is timed in a process of its own, and other work met the two unlike"
    known = sorted(_estimates(one.read("parallelism"), other.read("parallelism")))
    if len(known) < 2 or known[1] <= known[0] * (1 + UNLIKE_PARALLELISM):
        return ""
    return f"its sides keep {known[0]:.1f} and {known[1]:.1f} processors busy, and other work slowed them unlike"


def derive_at_reference_speed(source: Readable) -> Derived:
    """The time over the canary's in the same process, times the run's median canary."""
    time, reference, timing = source.read("execution_s"), source.pool.reference, find_timing(source)
    if time.interval is None:
        return Derived(fault=time.fault)
    if reference is None:
        return _no_reference_speed(source.pool.no_reference)
    if timing is None or timing.canary != reference.identity:
        return _no_reference_speed("its launches timed no canary")
    launches = zip_longest(time.values, source.read("canary_s").values[: len(time.values)])
    values = tuple(
        None if own_s is None or canary_s is None else own_s / canary_s * reference.canary_s
        for own_s, canary_s in launches
    )
    if all(value is None for value in values):
        return _no_reference_speed("none of its launches has a canary's time that can be")
    return Derived(values, time.contended, time.fault)


def _no_reference_speed(reason: str) -> Derived:
    return Derived(fault=Fault(Lack.NO_REFERENCE_SPEED, "at_reference_speed_s", reason=reason))


def derive_speedup(source: Readable) -> Derived:
    """Over the baseline variant, by launch."""
    baseline = source.find(source.planned_case.baseline)
    if baseline is None or is_baseline(source):
        return _undefined("speedup")
    times = source.read("execution_s"), baseline.read("execution_s")
    if (fault := _first_lacking(*times)) is not None:
        return Derived(fault=fault)
    ratios = tuple(None if value is None else math.exp(value) for value in read_log_ratios(source))
    doubt = doubt_ratio(source, baseline)
    return Derived(ratios, contended=bool(doubt), doubt=doubt)


def derive_break_even(source: Readable) -> Derived:
    """Of a jitted implementation, against the same as eager code."""
    eager = find_eager(source)
    if source.planned.mode != "jit" or eager is None:
        return _undefined("break_even_calls")
    warm = eager.read("execution_s"), source.read("execution_s")
    cold = eager.read("first_result_s"), source.read("first_result_s")
    if (fault := _first_lacking(*warm, *cold)) is not None:
        return Derived(fault=fault)
    gain = compare_paired(source, eager)
    if gain is None or not statistics.differs(gain):
        return Derived(fault=Fault(Lack.NO_DIFFERENCE, "break_even_calls"))
    calls = count_break_even(*_estimates(*warm), *_estimates(*cold))
    return Derived(fault=Fault(Lack.NEVER, "break_even_calls")) if calls is None else Derived((calls,))


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
    if first_call.interval is None:
        return Derived(fault=first_call.fault)
    return _add(source, [stage for stage in STAGES if source.read(stage).interval is not None])


def _add(source: Readable, stages: Sequence[str]) -> Derived:
    """The sum in each process; one that lacks a stage has no sum."""
    readings = [source.read(stage) for stage in stages]
    if (fault := _first_lacking(*readings)) is not None:
        return Derived(fault=fault)
    processes = zip_longest(*(reading.values for reading in readings))
    return Derived(tuple(map(_sum, processes)), fault=readings[0].fault)


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) if len(known) == len(values) else None


def derive_cache_saving(source: Readable) -> Derived:
    """The difference of two means, of processes of their own."""
    cold, cached = source.read("cold_s"), source.read("cached_s")
    if (fault := _first_lacking(cold, cached)) is not None:
        return Derived(fault=fault)
    above, below = _estimates(cold, cached)
    return Derived((above - below,), fault=cold.fault)


def derive_capacity_share(source: Readable) -> Derived:
    """The plan over what programs may use of the device."""
    capacity = usable_size(source.environment.device_memory_bytes)
    return _divide("capacity_share", source.read("peak_bytes"), capacity)


def derive_call_over_plan(source: Readable) -> Derived:
    """What a call held over what was planned."""
    return _divide("call_over_plan", source.read("runtime_peak_bytes"), source.read("peak_bytes").estimate)


def derive_donation_share(source: Readable) -> Derived:
    """What donation saves, of what was planned."""
    return _divide("donation_share", source.read("donation_saves_bytes"), source.read("peak_bytes").estimate)


def derive_flops_over_declared(source: Readable) -> Derived:
    """XLA counts what one device does, a cost what all do."""
    declared = _cost(source).flops
    return _divide("flops_over_declared", source.read("counted_flops"), declared, times=source.planned_case.devices)


def derive_bytes_over_declared(source: Readable) -> Derived:
    """As for operations."""
    declared = _cost(source).bytes
    return _divide("bytes_over_declared", source.read("counted_bytes"), declared, times=source.planned_case.devices)


def rate_of(metric: str, amount: Callable[[Cost], Number | None]) -> Callable[[Readable], Derived]:
    """A function that divides a declared amount by the execution time, launch by launch."""

    def derive(source: Readable) -> Derived:
        declared, time = amount(_cost(source)), source.read("execution_s")
        if declared is None or not 0 < declared < LARGEST:
            return _undefined(metric)
        values = (None if value is None else declared / value for value in time.values)
        return Derived(tuple(values), time.contended, time.fault)

    return derive


def _cost(source: Readable) -> Cost:
    return source.planned_case.cost or Cost()


def _divide(metric: str, above: Reading, below: Number | None, *, times: int = 1) -> Derived:
    """A reading, some times, over a positive number."""
    if above.estimate is None:
        return Derived(fault=above.fault)
    if below is None or not 0 < below < LARGEST:
        return _undefined(metric)
    return Derived((above.estimate * times / below,), above.contended, above.fault)


def _estimates(*readings: Reading) -> list[float]:
    return [reading.estimate for reading in readings if reading.estimate is not None]


def _first_lacking(*readings: Reading) -> Fault | None:
    """Why the first has no number that has none."""
    return next((reading.fault for reading in readings if reading.interval is None), None)


def _undefined(metric: str) -> Derived:
    return Derived(fault=Fault(Lack.NOT_DEFINED, metric))
