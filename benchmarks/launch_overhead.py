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
from harness.parent.fork_client import ForkServer
from harness.parent.run import describe, measuring
from harness.plan.cases import jax_variants, select, settings_for
from harness.plan.messages import CHECK, TIMING, Heartbeat, Launch
from harness.record import PlannedCase, Settings

LAUNCHES = 20
CASES = ("selu[dtype=float32,n=1000000]", "matmul[dtype=float32,n=512,precision=default]", "cumulative_sum[n=100]")


def main() -> None:
    """Prints the median overhead per case."""
    launches = int(sys.argv[1]) if len(sys.argv) > 1 else LAUNCHES
    settings = settings_for("default", suites=(DEFAULT_SUITES,), run_id="launch_overhead")
    with (
        tempfile.TemporaryDirectory() as folder,
        measuring("cpu", Path(folder) / "scratch", suites=settings.suites) as server,
    ):
        cases = describe(server, settings.suites, "cpu", "default", devices=False).cases
        for case in select(cases, CASES):
            _launch(server, case, settings, Path(folder), CHECK)  # fills the cache, as in a run
            spent = [_launch(server, case, settings, Path(folder), TIMING) for _ in range(launches)]
            print(
                f"{case.name}, {len(jax_variants(case))} variants: median {statistics.median(spent):.3f} s, "
                f"{min(spent):.3f} to {max(spent):.3f} s over {launches} launches"
            )


def _launch(server: ForkServer, case: PlannedCase, settings: Settings, folder: Path, kind: str) -> float:
    """Seconds of one process outside its measuring."""
    beats: list[tuple[float, Heartbeat]] = []
    start = time.perf_counter()
    server.run(
        lambda result: Launch(
            kind=kind,
            case=case,
            variants=jax_variants(case),
            probes=("numerics",) if kind == CHECK else ("timing",),
            suites=settings.suites,
            backend="cpu",
            settings=settings,
            index=0,
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
