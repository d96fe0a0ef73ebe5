"""What a variant asks of the machine, counted without calling it; and roughly how long that takes."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from jaxmeter.harness.plan.probes import ONE_COMPILED
from jaxmeter.harness.record import NATIVE


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What the first call of a variant compiles, and what every call does.

    Args:
      programs, equations: Compiled for the first call: how many, and what is in them together.
      again, equations_again: The same, of what every call compiles anew: loops of JAX in code that is not compiled.
      dispatched: Programs that a call starts one by one.
      derived: Of these, the ones that a derivative or vmap makes of a function anew in every call.
      flops: Of products and convolutions; those of a loop as often as it runs, as below.
      elements: Written by all other equations.
      bytes: Read and written by what is not fused: everything where equations are dispatched one by one.
      accelerator: Whether it runs on another device than the processor.
      tuning_s: Seconds in which kernels of its products are tried out when it is compiled, but not when it is loaded.
    """

    programs: int = 1
    equations: int = 10
    again: int = 0
    equations_again: int = 0
    dispatched: float = 1.0
    derived: float = 0.0
    flops: float = 0.0
    elements: float = 0.0
    bytes: float = 0.0
    accelerator: bool = False
    tuning_s: float = 0.0


UNKNOWN = Work()
"""Of code that cannot be traced, and where nothing was counted: a small program and a quick call."""

ACCELERATION = 100.0
"""How many times faster than the processor below an accelerator computes: a guess, of the order of data sheets."""


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Seconds for each that a call does."""

    dispatched: float
    derived: float = 0.0
    equations: float = 0.0
    flops: float
    elements: float = 0.0
    bytes: float = 0.0


# Printed by `python -m benchmarks.estimate_constants` for the first run in examples/, of two cores of an AMD EPYC.
# Behind each: what it explains over what was measured, at 10 %, 50 % and 90 % of the variants.
COMPILED = Rates(dispatched=4e-5, equations=9e-7, flops=6e-12, elements=1.4e-10, bytes=6e-11)  # 0.51, 1.25, 4.42
EAGER = Rates(dispatched=1e-5, derived=2.8e-4, flops=1e-11, bytes=9e-11)  # 0.35, 1.15, 2.38
NATIVE_RATES = Rates(dispatched=1e-6, flops=5.4e-12, elements=5.4e-10)  # 0.63, 1.05, 4.22

PROGRAM_S, EQUATION_S = 0.042, 0.0031  # 0.59, 1.15, 2.63
"""Tracing, lowering and compiling a program, and each equation in it."""

KIND_S = 0.039  # 0.69, 1.07, 13.8: device_put compiles nothing
"""An operation that code that is not compiled meets first."""

AGAIN_S = 0.1
"""A scan of two equations in such code took 0.10 to 0.12 s a call: it is compiled anew each time."""


def call_s(work: Work, mode: str) -> float:
    """Seconds of one call."""
    rates = COMPILED if mode in ONE_COMPILED else NATIVE_RATES if mode == NATIVE else EAGER
    starting_s = work.dispatched * rates.dispatched + work.derived * rates.derived + work.equations * rates.equations
    computing_s = work.flops * rates.flops + work.elements * rates.elements + work.bytes * rates.bytes
    again_s = 0.0 if mode == NATIVE else work.again * AGAIN_S + work.equations_again * EQUATION_S
    return starting_s + again_s + computing_s / (ACCELERATION if work.accelerator else 1)


def compile_s(work: Work, mode: str) -> float:
    """Seconds of tracing, lowering and compiling all that the first call needs."""
    if mode == NATIVE:
        return 0.0
    programs_s = work.programs * (PROGRAM_S if mode in ONE_COMPILED else KIND_S)
    return programs_s + work.equations * EQUATION_S + work.tuning_s
