"""Is `return_s` what a call takes until it returns? Its reading over one that frees nothing inside the clock.

    python -m benchmarks.time_until_return [ROUNDS]

One jitted call at three sizes, measured in this process in turn by `jaxmeter.measure` and here, where every result is
kept in a list until the round is over: so nothing is freed inside the clock, and each call gets memory that is new to
the process, which a call of ours may not. The figure is the median of the rounds' ratios.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time

import jax
import jax.numpy as jnp

from benchmarks.here import describe_here
from jaxmeter import measure

ROUNDS = 9
FLOATS = (10**5, 10**6, 10**7)
CALLS = 30
"""Results that are kept: 1.2 GB of the largest."""

WARM_UP_S = 0.2
"""The first calls take longer until they return; the harness has warmed up for longer when it looks."""


def add(x: jax.Array) -> jax.Array:
    """Cheap to compute, and its result is as large as its argument."""
    return x + 1


def main() -> None:
    """Prints both readings and their ratio, by size."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    print(f"{rounds} rounds; {describe_here('jax', 'numpy')}")
    for floats in FLOATS:
        argument = jnp.ones(floats, jnp.float32)
        pairs = [(read_return_s(argument), time_return_s(argument)) for _ in range(rounds)]
        ratios = [ours / true for ours, true in pairs]
        ours_s, true_s = (statistics.median(times) for times in zip(*pairs, strict=True))
        print(
            f"{floats:>9} floats: jaxmeter {1e6 * ours_s:.1f} us, results kept {1e6 * true_s:.1f} us; ratio median "
            f"{statistics.median(ratios):.3f}, {min(ratios):.3f} to {max(ratios):.3f}",
            flush=True,
        )


def read_return_s(argument: jax.Array) -> float:
    """What a record would hold.

    Raises:
      RuntimeError: It holds nothing.
    """
    measured = measure(add, argument)
    return_s = measured.value("jit", "return_s")
    if return_s is None:
        raise RuntimeError(f"no return_s:\n{measured!r}")
    return return_s


def time_return_s(argument: jax.Array) -> float:
    """Median of single calls until they return, each waited for before the next; no array is freed meanwhile."""
    call = jax.jit(add)
    kept: list[jax.Array | None] = [None] * CALLS
    times_s = []
    gc.collect()
    jax.block_until_ready(call(argument))
    warm = time.perf_counter() + WARM_UP_S
    while time.perf_counter() < warm:
        jax.block_until_ready(call(argument))
    gc.disable()
    try:
        for index in range(CALLS):
            start = time.perf_counter()
            kept[index] = call(argument)
            times_s.append(time.perf_counter() - start)
            jax.block_until_ready(kept[index])
    finally:
        gc.enable()
    return statistics.median(times_s)


if __name__ == "__main__":
    main()
