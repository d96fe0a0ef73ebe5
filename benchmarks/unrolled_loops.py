"""What unrolling a loop costs the compiler: `python -m benchmarks.unrolled_loops`.

Trace + lower + compile of the two unrolled cumulative sums against n, each in a fresh process without a cache, with the
exponent of a power law through the sizes and its 99 % interval.
"""

from __future__ import annotations

import subprocess
import sys
import time

from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.metrics.write import write_interval
from jaxmeter.reporting.compare.scaling import fit_exponent

SIZES = {"loop_list": (100, 150, 220, 330, 500, 750), "loop_stacked": (10, 20, 40, 60, 80, 100)}
BEYOND = {"loop_stacked": (100, 130, 170, 220, 280, 360)}


def main() -> None:
    """Prints the times, and the exponent of each stretch."""
    for sizes_of in (SIZES, BEYOND):
        for name, sizes in sizes_of.items():
            times_s = [float(child(name, str(n))) for n in sizes]
            exponent = " ".join(write_interval(METRICS["compile_exponent"], fit_exponent(sizes, times_s)))
            shown = ", ".join(f"{n}: {seconds:.2f} s" for n, seconds in zip(sizes, times_s, strict=True))
            print(f"{name}: n^{exponent} ({shown})", flush=True)


def child(*arguments: str) -> str:
    """Runs this file in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.unrolled_loops", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
        sys.exit()

    import jax
    import jax.numpy as jnp

    from jaxmeter.harness.programs.modes import How, prepare_as
    from jaxmeter.suites import cumulative_sum

    jax.jit(lambda x: x + 1)(jnp.ones(3))  # the compiler's own start does not count
    function, argument = getattr(cumulative_sum, sys.argv[1]), jnp.ones(int(sys.argv[2]))
    stages = prepare_as("jit", function, (argument,), How(), time.perf_counter, lambda stage: None).stages
    assert stages is not None
    print(stages.trace_s + stages.lower_s + stages.compile_s)
