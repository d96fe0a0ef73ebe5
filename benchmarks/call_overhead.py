"""What our sample loop adds to a call of some microseconds: its reading over `timeit` of the very same statement.

    python -m benchmarks.call_overhead [ROUNDS]

Both run in this process, in turn, on one jitted call; the figure is the median of the rounds' ratios.
"""

from __future__ import annotations

import statistics
import sys
import time
import timeit

import jax
import jax.numpy as jnp

from jaxmeter.harness.machine.environment import allowed_cores
from jaxmeter.harness.machine.interference import Interference
from jaxmeter.harness.metrics.statistics import find_block_time
from jaxmeter.harness.plan.settings import make_settings
from jaxmeter.harness.probes.timing import InterleavedTiming
from jaxmeter.harness.programs.modes import How, prepare_as

ROUNDS = 15


def main() -> None:
    """Prints the ratio and the two readings."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    prepared = prepare_as("jit", lambda x: x + 1, (jnp.ones(8),), How(), time.perf_counter, lambda stage: None)
    settings = make_settings("default", suites=(), run_id="call_overhead")
    names = {"call": prepared.call, "args": prepared.args, "wait": prepared.wait}
    timer = timeit.Timer("wait(call(*args))", globals=names)
    calls, _ = timer.autorange()
    ours, theirs = [], []
    for seed in range(rounds):
        (process,) = InterleavedTiming(
            variants={"call": prepared},
            settings=settings,
            seed=seed,
            clock=time.perf_counter,
            interference=Interference(),
            cores=allowed_cores(),
            beat=lambda variant, stage: None,
        ).measure()
        ours.append(statistics.median(find_block_time(block.samples_s) for block in process.blocks))
        theirs.append(statistics.median(timer.repeat(repeat=5, number=calls)) / calls)
    ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
    print(f"jaxmeter {1e6 * statistics.median(ours):.2f} us, timeit {1e6 * statistics.median(theirs):.2f} us")
    print(
        f"ratio over {rounds} rounds: median {statistics.median(ratios):.3f}, {min(ratios):.3f} to {max(ratios):.3f}"
        f"  (jax {jax.__version__})"
    )


if __name__ == "__main__":
    main()
