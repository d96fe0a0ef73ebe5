"""What one more timing launch costs beyond its measuring: fork, backend, suite, inputs, cached compilation, writing.

    python -m benchmarks.launch_overhead [LAUNCHES]

A launch's measuring lasts from its first warm-up to its last dispatch sample; the rest is overhead.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from harness.declare.catalogue import DEFAULT_SUITES
from harness.machine.places import BACKENDS
from harness.parent.fork_client import ForkServer
from harness.parent.prepare_run import describe_suites
from harness.parent.servers import start_servers
from harness.plan.launches import Launch, plan_launches_of
from harness.plan.messages import Heartbeat, Measure
from harness.plan.probes import CHECK
from harness.plan.selection import select
from harness.plan.settings import make_settings
from harness.record import PlannedCase, Settings

CPU = BACKENDS["cpu"]
LAUNCHES = 20
CASES = ("selu[dtype=float32,n=1000000]", "matmul[dtype=float32,n=512,precision=default]", "cumulative_sum[n=100]")


def main() -> None:
    """Prints the median overhead per case."""
    launches = int(sys.argv[1]) if len(sys.argv) > 1 else LAUNCHES
    settings = make_settings("default", probes=("timing",), suites=(DEFAULT_SUITES,), run_id="launch_overhead")
    with (
        tempfile.TemporaryDirectory() as folder,
        start_servers(Path(folder) / "scratch", suites=settings.suites) as servers,
    ):
        server = servers.of(CPU)
        cases = describe_suites(server, settings.suites, CPU, "default", devices=False).cases
        for case in select(cases, CASES):
            # Of each kind the first is that of JAX's variants.
            first = {one.process: one for one in reversed(list(plan_launches_of(case, settings, CPU)))}
            _measure(server, first[CHECK], case, settings, Path(folder))  # fills the cache, as in a run
            timing = first["timing"]
            spent = [_measure(server, timing, case, settings, Path(folder)) for _ in range(launches)]
            print(
                f"{case.name}, {len(timing.variants)} variants: median {statistics.median(spent):.3f} s, "
                f"{min(spent):.3f} to {max(spent):.3f} s over {launches} launches"
            )


def _measure(server: ForkServer, launch: Launch, case: PlannedCase, settings: Settings, folder: Path) -> float:
    """Seconds of one process outside its measuring."""
    beats: list[tuple[float, Heartbeat]] = []
    start = time.perf_counter()
    server.run(
        lambda result: Measure(
            launch=launch,
            case=case,
            place=CPU,
            settings=settings,
            seed=0,
            cache=str(folder / "cache"),
            folder=str(folder),
            result=result,
        ),
        stage_limit_s=settings.stage_limit_s,
        on_beat=lambda beat: beats.append((time.perf_counter(), beat)),
    )
    end = time.perf_counter()
    measured = [moment for moment, beat in beats if beat.stage in ("warm-up", "timing", "dispatch")]
    return end - start - (measured[-1] - measured[0] if measured else 0.0)


if __name__ == "__main__":
    main()
