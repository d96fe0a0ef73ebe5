"""Calibration loops, and how fast a processor computes products and moves data: the roof of rates."""

from __future__ import annotations

import platform as host_platform
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from statistics import median
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmeter.harness.machine.environment import list_packages
from jaxmeter.harness.machine.platforms import Platform
from jaxmeter.harness.programs.modes import Clock
from jaxmeter.harness.record import CalibrationLoop, now
from jaxmeter.harness.record.environment import Peaks
from jaxmeter.harness.record.processes import ALU, COPY, DEVICE

REPEATS = 3
SIZES = (512, 1024, 2048)
"""Of square products; which one is fastest depends on the caches and the number of cores."""

FORMATS = ("float32", "bfloat16")
TRIAD_BYTES = 256 * 2**20
"""Of one array: no cache holds two of them. Source: on a machine whose caches are said to have 480 MB, 16 MB moved at
38 to 41 GB/s and 256 MB at 21 to 22."""

CALLS = 3
"""Timed calls of each repeat, of which the median counts."""


def measure_peaks() -> Peaks:
    """Return the rates of the processor that jax runs on, over all of its cores. It takes 2 to 4 s."""
    products = {name: [_make_product(size, name) for size in SIZES] for name in FORMATS}
    triad = _make_triad()
    flops: dict[str, list[float]] = {name: [] for name in FORMATS}
    moved: list[float] = []
    for _ in range(REPEATS):
        for name, calls in products.items():
            rates = (2.0 * size**3 / _time(call) for size, call in zip(SIZES, calls, strict=True))
            flops[name].append(max(rates))
        moved.append(3 * TRIAD_BYTES / _time(triad))
    packages = {name: version for name, version in list_packages().items() if name in ("jax", "jaxlib")}
    return Peaks(
        at=now(),
        packages=packages,
        flops={name: tuple(values) for name, values in flops.items()},
        bytes_per_s=tuple(moved),
    )


def _make_product(size: int, name: str) -> Callable[[], Any]:
    key = jax.random.key(0)
    left, right = (jax.random.normal(subkey, (size, size), jnp.dtype(name)) for subkey in jax.random.split(key))
    product = jax.jit(jnp.matmul)
    product(left, right).block_until_ready()
    return lambda: product(left, right).block_until_ready()


def _make_triad() -> Callable[[], Any]:
    """Its result takes the place of an argument: a new one would be time of the system's, for its pages."""
    size = TRIAD_BYTES // 4
    triad = jax.jit(lambda x, y: x + 2.0 * y, donate_argnums=0)
    held = [jnp.zeros(size, jnp.float32)]
    other = jnp.ones(size, jnp.float32)

    def call() -> None:
        held[0] = triad(held[0], other).block_until_ready()

    call()
    return call


def _time(call: Callable[[], Any]) -> float:
    times = []
    for _ in range(CALLS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return median(times)


TakeCalibration = Callable[[], float | None]
"""Takes one sample of the calibration loop next to the blocks, in seconds; None without such a loop."""

ALU_STEPS = 600
"""About 0.03 ms of CPython 3.11 on such a machine, 0.05 ms when it is slow: long enough for a clock, and short compared
with a block."""

ALU_PRELUDE = 200
"""Steps before the clock starts: loading the loop's code into the caches must not count as a slow core."""

COPY_BYTES = 4 * 2**20
"""More than a core's own cache."""

DEVICE_NUMBERS, DEVICE_ROUNDS, DEVICE_STEPS = 2**18, 32, 64
"""A thread for each number fits the largest devices at once; about 0.3 ms on one."""


@dataclass
class CalibrationWork:
    """A calibration loop, and its samples so far.

    Args:
      run: The work itself.
      before: A function that is called before it, untimed.
    """

    name: str
    identity: str
    run: Callable[[], object]
    before: Callable[[], object] = lambda: None
    samples_s: list[float] = field(default_factory=list)


class Calibrations:
    """The calibration loops of one process, each called once untimed when they are made.

    Args:
      between: The loops after every second pass.
      beside: The loop before and after each block, or None.
    """

    def __init__(self, between: list[CalibrationWork], beside: CalibrationWork | None, clock: Clock) -> None:
        self._between, self._beside, self._clock = between, beside, clock
        for work in self._list():
            work.run()

    def take_between(self) -> None:
        """Take one sample of each loop that runs between the passes."""
        for work in self._between:
            self._take(work)

    def take_beside(self) -> float | None:
        """Take one sample, in seconds, of the loop next to the blocks."""
        return None if self._beside is None else self._take(self._beside)

    def record(self) -> tuple[CalibrationLoop, ...]:
        """Return all samples."""
        return tuple(
            CalibrationLoop(name=work.name, identity=work.identity, samples_s=tuple(work.samples_s))
            for work in self._list()
        )

    def _list(self) -> list[CalibrationWork]:
        return [*self._between, *([] if self._beside is None else [self._beside])]

    def _take(self, work: CalibrationWork) -> float:
        work.before()
        start = self._clock()
        work.run()
        work.samples_s.append(self._clock() - start)
        return work.samples_s[-1]


def make_calibrations(platform: Platform, clock: Clock, *, alone: bool, on_device: bool) -> Calibrations:
    """Return the calibration loops of a process.

    The loop next to the blocks measures only the host's speed. On a platform with a device of its own, neither JAX's
    times nor those of peers are normalised.

    Args:
      alone: Whether the process times one variant only.
      on_device: Whether it uses the platform's devices at all, as another library's functions do not.
    """
    between = [] if alone else [make_copy()]
    if platform.is_host:
        return Calibrations(between, make_alu(), clock)
    return Calibrations([*between, make_device_loop()] if on_device else between, None, clock)


def take_none() -> float | None:
    """Take no sample: there is no calibration loop next to the blocks."""
    return None


def find_slower(before_s: float | None, after_s: float | None) -> float | None:
    """Return the slower of the samples before and after a block, which ran at full speed only if both did."""
    return None if before_s is None or after_s is None else max(before_s, after_s)


def make_alu() -> CalibrationWork:
    """Return a loop of integers in Python, which measures the speed of one core."""
    versions = f"{host_platform.python_implementation()} {host_platform.python_version()}"
    return CalibrationWork(
        name=ALU,
        identity=f"{ALU} 2: {ALU_STEPS} steps of a Python loop, {versions}",
        run=lambda: _count(ALU_STEPS),
        before=lambda: _count(ALU_PRELUDE),
    )


def make_copy() -> CalibrationWork:
    """Return a copy by one core, which measures the speed of memory."""
    source = np.ones(COPY_BYTES // 4, np.float32)
    target = np.empty_like(source)
    return CalibrationWork(
        name=COPY,
        identity=f"{COPY} 1: {COPY_BYTES // 2**20} MiB copied, NumPy {np.__version__}",
        run=lambda: np.copyto(target, source),
    )


def make_device_loop() -> CalibrationWork:
    """Compile a loop of integers on the first device, which measures the speed of its processors."""
    numbers = jax.numpy.arange(1, DEVICE_NUMBERS + 1, dtype="uint32")
    compiled = jax.jit(_scramble).lower(numbers).compile()
    kind = jax.devices()[0].device_kind
    what = f"{DEVICE_ROUNDS * DEVICE_STEPS} xorshifts of {DEVICE_NUMBERS} integers"
    return CalibrationWork(
        name=DEVICE,
        identity=f"{DEVICE} 1: {what}, jaxlib {version('jaxlib')}, {kind}",
        run=lambda: jax.block_until_ready(compiled(numbers)),
    )


def _count(steps: int) -> int:
    """Count with integers below 2**30, beyond which CPython uses several digits."""
    value = 1
    for _ in range(steps):
        value = (value * 40_009 + 1) % 16_381
    return value


def _scramble(numbers: Any) -> Any:
    """Compute steps that no compiler can simplify: xorshift (Marsaglia 2003), many in one kernel."""

    def several(_: int, values: Any) -> Any:
        for _ in range(DEVICE_STEPS):
            values ^= values << 13
            values ^= values >> 17
            values ^= values << 5
        return values

    return jax.lax.fori_loop(0, DEVICE_ROUNDS, several, numbers)
