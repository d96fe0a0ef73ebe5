"""Measures how fast a processor computes products and moves data: the roof that rates are compared with."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import jax
import jax.numpy as jnp

from jaxmeter.harness.machine.environment import list_packages
from jaxmeter.harness.record import now
from jaxmeter.harness.record.peaks import Peaks

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
