"""How long a plan takes, and how many processes: from the list of processes, and from what each variant has to do."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jaxmeter.harness.plan.probes import CHECK
from jaxmeter.harness.plan.processes import SHAPES, PlannedProcess
from jaxmeter.harness.plan.replays import BEFORE
from jaxmeter.harness.plan.settings import find_longest_s
from jaxmeter.harness.plan.timing_process import count_passes
from jaxmeter.harness.plan.work import UNKNOWN, Work, call_s, compile_s
from jaxmeter.harness.record import NATIVE, Settings

PROCESS_S = 0.15
"""Beginning a process: fork, backend, suites, inputs; devices beside the host's processor, as their platform says."""

VARIANT_S = 0.05
"""Of one variant in one process beside compiling and calling: its program's text, the answer."""

LOADING = 0.3
"""A program out of the run's cache is traced and lowered again, and loaded: this share of what compiling takes."""

TRACING = 0.1
"""Share of compiling that tracing takes."""

TIMED_VARIANT_S = 0.15
"""Warm-up, blocks alone, single calls and calibration loops of a variant whose calls are quick."""

WARM_UP_CALLS = 4
"""Of a slow call: the first, two of warm-up, one that tells time until return."""

RESIDENT_S, RESIDENT_CALLS = 0.25, 5
TRACED_S, TRACED_CALLS = 0.1, 6
"""What these two probes wait for, and how often they call."""

REFERENCE = 2
"""A reference computes in float64, which takes so many times as long as a peer's float32."""

CACHING = {"cold": 1.0, "warm": 1.0, "new_shape": 2.0, "new_static": 2.0}
"""How often a cache state compiles; the one that is left out loads."""

Works = Mapping[str, Mapping[str, Work]]
"""Work by case and variant."""


@dataclass(frozen=True)
class Estimate:
    """How long a plan takes, in seconds, and how many processes it starts.

    Args:
      least_s, fewest: Without what is left out where time is short.
      most_s, most: With all of it.
    """

    least_s: float
    most_s: float
    fewest: int
    most: int


def estimate(processes: Sequence[PlannedProcess], settings: Settings, work: Works) -> Estimate:
    """Neither takes longer than the budget: what does not fit is left out, or lost.

    One that nobody gave may be exceeded, for the fewest rounds.
    """
    times = [(process, process_s(process, settings, work)) for process in processes]
    least_s = math.fsum(seconds for process, seconds in times if not process.extra)
    most_s = math.fsum(seconds for _, seconds in times)
    longest_s = find_longest_s(settings)
    return Estimate(
        least_s=min(least_s, longest_s),
        most_s=min(most_s, max(settings.budget_s, min(least_s, longest_s))),
        fewest=sum(not process.extra for process in processes),
        most=len(processes),
    )


def first_round_s(processes: Sequence[PlannedProcess], settings: Settings, work: Works) -> float:
    """Seconds until every case has been looked at once."""
    return math.fsum(process_s(process, settings, work) for process in processes if process.round == 0)


def process_s(process: PlannedProcess, settings: Settings, work: Works) -> float:
    """Seconds of one process."""
    known = work.get(process.case, {})
    names = [name.removesuffix(BEFORE.format("")) for name in process.variants]
    variants = [_Variant(known.get(name, UNKNOWN), name.rpartition(":")[2]) for name in names]
    begun_s = PROCESS_S + process.begins_s
    if process.kind == "timing":
        return begun_s + _timing_s(variants, settings)
    if process.refills:
        return begun_s + math.fsum(variant.compile_s for variant in variants)
    return begun_s + math.fsum(_looking_s(variant, process) for variant in variants) + _common_s(variants, process)


@dataclass(frozen=True)
class _Variant:
    """Seconds of a variant."""

    work: Work
    mode: str

    @property
    def call_s(self) -> float:
        return call_s(self.work, self.mode)

    @property
    def compile_s(self) -> float:
        return compile_s(self.work, self.mode)

    @property
    def again_s(self) -> float:
        """Of compiling where a process has tried out its kernels before."""
        return max(0.0, self.compile_s - self.work.tuning_s)

    @property
    def load_s(self) -> float:
        return LOADING * self.again_s


def _looking_s(variant: _Variant, process: PlannedProcess) -> float:
    """Seconds for one variant in a process that looks at one after the other."""
    one_s, built_s, loaded_s = variant.call_s, variant.compile_s, variant.load_s
    match process.kind:
        case kind if kind == SHAPES:
            return TRACING * variant.again_s if variant.mode == "eager" else 0.0
        case kind if kind == CHECK:  # memory compiles again, with donated arguments
            again_s = variant.again_s if "memory" in process.assignments and variant.mode == "jit" else 0.0
            return VARIANT_S + built_s + again_s + 2 * one_s
        case "measured_memory":
            return RESIDENT_S + loaded_s + RESIDENT_CALLS * one_s
        case "compilation":  # aot loads its program again, and compiles what it exported
            again_s = variant.again_s if variant.mode == "aot" else 0.0
            return VARIANT_S + built_s + again_s + (2 if process.round == 0 else 1) * one_s
        case "caching":
            return (loaded_s if process.cache_state == "cached" else CACHING[process.cache_state] * built_s) + 2 * one_s
        case "trace":
            return TRACED_S + loaded_s + TRACED_CALLS * one_s
        case _:  # a probe that is new here
            return VARIANT_S + built_s + one_s


def _common_s(variants: Sequence[_Variant], process: PlannedProcess) -> float:
    """Seconds for what the variants of a process share: the reference."""
    if process.kind != CHECK or not variants:
        return 0.0
    return REFERENCE * call_s(variants[0].work, NATIVE)


def _timing_s(variants: Sequence[_Variant], settings: Settings) -> float:
    """Seconds of a process whose variants alternate: loading, warm-up, and passes of one block each."""
    if not variants:
        return 0.0
    passes = count_passes([max(settings.block_s, variant.call_s) for variant in variants], settings)
    sampled_s = settings.blocks * settings.block_s  # in few passes as long as in all
    return math.fsum(
        variant.load_s + max(TIMED_VARIANT_S, WARM_UP_CALLS * variant.call_s) + max(sampled_s, passes * variant.call_s)
        for variant in variants
    )
