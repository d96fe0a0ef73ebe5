"""What one more timing process costs beyond its measuring: fork, backend, suite, inputs, cached compilation, writing.

    python -m benchmarks.process_overhead [PROCESSES]

A process's measuring lasts from its first warm-up to the begin of its last stage; the rest is overhead. Of that,
loading programs is what tracing, lowering and fetching them from the cache take: it grows with their number and size.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.here import describe_here
from jaxmeter.harness.declare.catalogue import DEFAULT_SUITES
from jaxmeter.harness.machine.platforms import BACKENDS
from jaxmeter.harness.parent import fork_client
from jaxmeter.harness.parent.prepare_run import describe_suites
from jaxmeter.harness.parent.servers import start_servers
from jaxmeter.harness.plan.cases import select
from jaxmeter.harness.plan.messages import Heartbeat, Measure
from jaxmeter.harness.plan.probes import CHECK
from jaxmeter.harness.plan.processes import PlannedProcess, plan_processes_of
from jaxmeter.harness.plan.settings import make_settings
from jaxmeter.harness.record import PlannedCase, Settings

Beats = list[tuple[float, Heartbeat]]

CPU = BACKENDS["cpu"]
PROCESSES = 20
MEASURING = ("warm-up", "timing", "isolated", "times_return")
LOADING = ("prepare", "trace", "lower", "compile")
LISTEN_S = 0.001
"""How often heartbeats are read here, as the stages are told apart by them; a run reads them more rarely."""

CASES = ("selu[dtype=float32,n=1000000]", "matmul[dtype=float32,n=512,precision=default]", "cumulative_sum[n=100]")


def main() -> None:
    """Prints the median overhead per case, loading apart and together."""
    processes = int(sys.argv[1]) if len(sys.argv) > 1 else PROCESSES
    fork_client.LISTEN_S = LISTEN_S
    settings = make_settings("default", probes=("timing",), suites=(DEFAULT_SUITES,), run_id="process_overhead")
    print(f"{processes} processes; {describe_here('jax', 'numpy')}")
    with (
        tempfile.TemporaryDirectory() as folder,
        start_servers(Path(folder), suites=settings.suites) as servers,
    ):
        server = servers.of(CPU)
        cases = describe_suites(server, settings.suites, CPU, "default", devices=False).cases
        for case in select(cases, CASES):
            # Of each kind the one with the most variants is JAX's.
            planned = sorted(plan_processes_of(case, settings, CPU), key=lambda process: len(process.variants))
            first = {process.kind: process for process in planned if process.round == 0}
            _measure(server, first[CHECK], case, settings, Path(folder))  # fills the cache, as in a run
            timing = first["timing"]
            spent = [_measure(server, timing, case, settings, Path(folder)) for _ in range(processes)]
            overhead = [seconds for seconds, _ in spent]
            loading = [add_up_loading(beats) for _, beats in spent]
            rest = [overhead_s - loading_s for overhead_s, loading_s in zip(overhead, loading, strict=True)]
            print(
                f"{case.name}, {len(timing.variants)} variants: {_describe(overhead)}; of it loading its programs "
                f"{_describe(loading)}, the rest {_describe(rest)}",
                flush=True,
            )


def _describe(seconds: Sequence[float]) -> str:
    return f"{statistics.median(seconds):.3f} s ({min(seconds):.3f} to {max(seconds):.3f})"


def _measure(
    server: fork_client.ForkServer, process: PlannedProcess, case: PlannedCase, settings: Settings, folder: Path
) -> tuple[float, Beats]:
    """Seconds of one process outside its measuring, and when each of its stages began."""
    beats: Beats = []
    start = time.perf_counter()
    server.run(
        lambda result: Measure(
            process=process,
            case=case,
            platform=CPU,
            settings=settings,
            seed=0,
            cache=str(folder / "cache"),
            inputs=str(folder / "inputs" / case.id),
            folder=str(folder),
            result=result,
        ),
        stage_limit_s=settings.stage_limit_s,
        on_beat=lambda beat: beats.append((time.perf_counter(), beat)),
    )
    end = time.perf_counter()
    measured = [moment for moment, beat in beats if beat.stage in MEASURING]
    return end - start - (measured[-1] - measured[0] if measured else 0.0), beats


def add_up_loading(beats: Beats) -> float:
    """Seconds of the stages before a variant's first call, over all variants; each lasts until the next begins."""
    return sum(end - begin for (begin, beat), (end, _) in itertools.pairwise(beats) if beat.stage in LOADING)


if __name__ == "__main__":
    main()
