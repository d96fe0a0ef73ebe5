"""Canaries: fixed pieces of work between the variants, which tell how fast the machine was meanwhile.

A virtual machine's cores may have two speeds, for seconds to minutes, which no counter of the kernel tells. A fixed
loop of Python does: divided by it, times of unchanged code in two runs differed by 3.8 % instead of 8.5 %.

They stand after every second sweep, where a shuffled order and its reverse have ended: so within the pair nothing comes
between the variants, and who comes next is drawn by chance. The loop (0.15 ms) touches no memory to speak of. The copy
washes the caches, as every other variant's block does. So it is left out where a variant is timed alone: there it would
make half of the blocks begin with cold caches, which without it are warm.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import jax
import numpy as np

from harness.machine.places import Place
from harness.programs.modes import Clock
from harness.record import Canary
from harness.record.launches import ALU, COPY, DEVICE

ALU_STEPS = 3_000
"""About 0.15 ms of CPython 3.11 on the machine of the figures above: long enough for a clock, short beside a block."""

ALU_PRELUDE = 100
"""Steps before the clock starts: the caches may have lost the loop's own code, and that is no speed of the core."""

COPY_BYTES = 4 * 2**20
"""More than a core's own cache."""

DEVICE_NUMBERS, DEVICE_ROUNDS, DEVICE_STEPS = 2**18, 32, 64
"""A thread for each number fits the largest devices at once; about 0.3 ms on one."""


@dataclass
class Work:
    """A canary, and its samples so far.

    Args:
      run: The work itself.
      before: What is called before it, untimed.
    """

    name: str
    identity: str
    run: Callable[[], object]
    before: Callable[[], object] = lambda: None
    samples_s: list[float] = field(default_factory=list)


class Canaries:
    """The canaries of one process, each called once untimed when they are made."""

    def __init__(self, works: list[Work], clock: Clock) -> None:
        self._works, self._clock = works, clock
        for work in works:
            work.run()

    def take(self) -> None:
        """One sample of each."""
        for work in self._works:
            work.before()
            start = self._clock()
            work.run()
            work.samples_s.append(self._clock() - start)

    def record(self) -> tuple[Canary, ...]:
        """All samples."""
        return tuple(
            Canary(name=work.name, identity=work.identity, samples_s=tuple(work.samples_s)) for work in self._works
        )


def make_works(place: Place, *, alone: bool, on_device: bool) -> list[Work]:
    """The canaries of a process, the loop last: the next block comes after the least disturbing one.

    Only a host's own loop is a measure of its speed: beside a device of its own, neither JAX's times nor those of peers
    are brought to a reference speed, so that both are what they were.

    Args:
      alone: Whether the process times one variant only.
      on_device: Whether it uses the place's devices at all, as another library's functions do not.
    """
    works = [] if alone else [make_copy()]
    if place.is_host:
        return [*works, make_alu()]
    return [*works, make_device_loop()] if on_device else works


def make_alu() -> Work:
    """A loop of integers in Python: the speed of one core."""
    versions = f"{platform.python_implementation()} {platform.python_version()}"
    return Work(
        name=ALU,
        identity=f"{ALU} 1: {ALU_STEPS} steps of a Python loop, {versions}",
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
