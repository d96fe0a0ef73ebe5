"""Calibration loops: fixed pieces of work between the blocks, which tell how fast the machine was meanwhile.

A core of a virtual machine has two speeds: its own, and two thirds of it, probably while its physical core serves
another machine too. Each lasts for one to forty milliseconds, and no counter of the kernel tells. A fixed loop of
Python does: it stands before and after every block, takes 0.03 ms, and touches no memory to speak of.

The others stand after every second pass, where a shuffled order and its reverse have ended: so within the pair nothing
but the loop comes between the variants, and who comes next is drawn by chance. The copy washes the caches, as every
other variant's block does. So it is left out where a variant is timed alone: there it would make half of the blocks
begin with cold caches, which without it are warm.
"""

from __future__ import annotations

import platform as host_platform
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import jax
import numpy as np

from jaxmeter.harness.machine.platforms import Platform
from jaxmeter.harness.programs.modes import Clock
from jaxmeter.harness.record import CalibrationLoop
from jaxmeter.harness.record.processes import ALU, COPY, DEVICE

TakeCalibration = Callable[[], float | None]
"""One sample of the calibration loop beside the blocks, in seconds; None where there is none."""

ALU_STEPS = 600
"""About 0.03 ms of CPython 3.11 on such a machine, 0.05 ms when it is slow: long enough for a clock, short beside a
block."""

ALU_PRELUDE = 200
"""Steps before the clock starts: the caches may have lost the loop's own code, and that is no speed of the core."""

COPY_BYTES = 4 * 2**20
"""More than a core's own cache."""

DEVICE_NUMBERS, DEVICE_ROUNDS, DEVICE_STEPS = 2**18, 32, 64
"""A thread for each number fits the largest devices at once; about 0.3 ms on one."""


@dataclass
class Work:
    """A calibration loop, and its samples so far.

    Args:
      run: The work itself.
      before: What is called before it, untimed.
    """

    name: str
    identity: str
    run: Callable[[], object]
    before: Callable[[], object] = lambda: None
    samples_s: list[float] = field(default_factory=list)


class Calibrations:
    """The calibration loops of one process, each called once untimed when they are made.

    Args:
      between: Those after every second pass.
      beside: The one before and after each block; None where there is none.
    """

    def __init__(self, between: list[Work], beside: Work | None, clock: Clock) -> None:
        self._between, self._beside, self._clock = between, beside, clock
        for work in self._list():
            work.run()

    def take_between(self) -> None:
        """One sample of each that stands between the passes."""
        for work in self._between:
            self._take(work)

    def take_beside(self) -> float | None:
        """One sample of the one that stands beside the blocks, in seconds."""
        return None if self._beside is None else self._take(self._beside)

    def record(self) -> tuple[CalibrationLoop, ...]:
        """All samples."""
        return tuple(
            CalibrationLoop(name=work.name, identity=work.identity, samples_s=tuple(work.samples_s))
            for work in self._list()
        )

    def _list(self) -> list[Work]:
        return [*self._between, *([] if self._beside is None else [self._beside])]

    def _take(self, work: Work) -> float:
        work.before()
        start = self._clock()
        work.run()
        work.samples_s.append(self._clock() - start)
        return work.samples_s[-1]


def make_calibrations(platform: Platform, clock: Clock, *, alone: bool, on_device: bool) -> Calibrations:
    """The calibration loops of a process.

    Only a host's own loop is a measure of its speed: beside a device of its own, neither JAX's times nor those of peers
    are brought to a reference speed, so that both are what they were.

    Args:
      alone: Whether the process times one variant only.
      on_device: Whether it uses the platform's devices at all, as another library's functions do not.
    """
    between = [] if alone else [make_copy()]
    if platform.is_host:
        return Calibrations(between, make_alu(), clock)
    return Calibrations([*between, make_device_loop()] if on_device else between, None, clock)


def take_none() -> float | None:
    """Where no calibration loop stands beside the blocks."""
    return None


def find_slower(before_s: float | None, after_s: float | None) -> float | None:
    """Of the samples on both sides of a block: it ran at full speed only if both did."""
    return None if before_s is None or after_s is None else max(before_s, after_s)


def make_alu() -> Work:
    """A loop of integers in Python: the speed of one core."""
    versions = f"{host_platform.python_implementation()} {host_platform.python_version()}"
    return Work(
        name=ALU,
        identity=f"{ALU} 2: {ALU_STEPS} steps of a Python loop, {versions}",
        run=lambda: _count(ALU_STEPS),
        before=lambda: _count(ALU_PRELUDE),
    )


def make_copy() -> Work:
    """A copy by one core: the speed of memory."""
    source = np.ones(COPY_BYTES // 4, np.float32)
    target = np.empty_like(source)
    return Work(
        name=COPY,
        identity=f"{COPY} 1: {COPY_BYTES // 2**20} MiB copied, NumPy {np.__version__}",
        run=lambda: np.copyto(target, source),
    )


def make_device_loop() -> Work:
    """A loop of integers on the first device, compiled here: the speed of its processors."""
    numbers = jax.numpy.arange(1, DEVICE_NUMBERS + 1, dtype="uint32")
    compiled = jax.jit(_scramble).lower(numbers).compile()
    kind = jax.devices()[0].device_kind
    what = f"{DEVICE_ROUNDS * DEVICE_STEPS} xorshifts of {DEVICE_NUMBERS} integers"
    return Work(
        name=DEVICE,
        identity=f"{DEVICE} 1: {what}, jaxlib {version('jaxlib')}, {kind}",
        run=lambda: jax.block_until_ready(compiled(numbers)),
    )


def _count(steps: int) -> int:
    """Below 2**30, beyond which CPython would count with several digits."""
    value = 1
    for _ in range(steps):
        value = (value * 40_009 + 1) % 16_381
    return value


def _scramble(numbers: Any) -> Any:
    """Steps that no compiler can sum up: xorshift (Marsaglia 2003), many in one kernel."""

    def several(_: int, values: Any) -> Any:
        for _ in range(DEVICE_STEPS):
            values ^= values << 13
            values ^= values >> 17
            values ^= values << 5
        return values

    return jax.lax.fori_loop(0, DEVICE_ROUNDS, several, numbers)
