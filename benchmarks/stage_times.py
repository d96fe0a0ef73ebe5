"""Do the stage times agree with what JAX itself reports? `python -m benchmarks.stage_times`.

Every jitted variant of the own suites' quick cases, in a process of its own as a run has it: the times that the harness
takes around trace, lower and compile, against the durations of `jax.monitoring` for the same stages.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time

ALLOWED_S, ALLOWED_SHARE = 2e-3, 0.02
STAGES = ("trace", "lower", "compile")
ROUNDS = 3


def main() -> None:
    """Prints the differences, largest first by stage."""
    differences = []
    for _ in range(ROUNDS):
        for name in json.loads(child("names")):
            differences += [(name, *stage) for stage in json.loads(child(name))]
    for wanted in STAGES:
        found = [(taken - told, taken, name) for name, stage, taken, told in differences if stage == wanted]
        outside = [one for one in found if abs(one[0]) > max(ALLOWED_S, ALLOWED_SHARE * one[1])]
        worst = max(found, key=lambda one: abs(one[0]))
        middle = sorted(abs(one[0]) for one in found)[len(found) // 2]
        print(
            f"{wanted}: {len(found) - len(outside)} of {len(found)} within 2 ms or 2 %; difference median "
            f"{middle * 1e3:.2f} ms, largest {worst[0] * 1e3:+.2f} ms of {worst[1] * 1e3:.1f} ms ({worst[2]})"
        )


def child(what: str) -> str:
    """Runs this file in a fresh process."""
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.stage_times", what], capture_output=True, text=True, check=True
    ).stdout


def names() -> list[str]:
    """`case index/variant` of every jitted variant."""
    return [
        f"{suite.name}/{workload.name}/{number}/{item.name}:jit"
        for suite in find_suites([DEFAULT_SUITES])
        for workload in suite.workloads
        for number, params in enumerate(workload.list_cases("quick", "cpu"))
        for item in workload.implementations
        if "jit" in item.modes and item.find_skip(params, "cpu") is None
    ]


def measure(name: str) -> list[tuple[str, float, float]]:
    """(stage, seconds taken, seconds that JAX reported) of one variant."""
    _, workload_name, number, variant = name.split("/")
    gc.collect()
    gc.freeze()  # as the processes of a run begin, whose server has done it
    (workload,) = (
        one for suite in find_suites([DEFAULT_SUITES]) for one in suite.workloads if one.name == workload_name
    )
    params = list(workload.list_cases("quick", "cpu"))[int(number)]
    context = Context(workload, params, BACKENDS["cpu"], make_inputs(workload, params), time.perf_counter, folder=None)
    jax.clear_caches()
    stages = context.prepare(variant).stages
    assert stages is not None
    told = stages.events.durations_s
    return [
        ("trace", stages.trace_s, told[TRACE][-1]),  # nested functions are traced inside, and report first
        ("lower", stages.lower_s, sum(told[LOWER])),
        ("compile", stages.compile_s, sum(told[COMPILE])),
    ]


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
        sys.exit()

    import jax

    from jaxmeter.harness.declare.catalogue import DEFAULT_SUITES, find_suites
    from jaxmeter.harness.machine.platforms import BACKENDS
    from jaxmeter.harness.probes import Context
    from jaxmeter.harness.programs.arguments import make_inputs
    from jaxmeter.harness.programs.jax_events import COMPILE, LOWER, TRACE

    print(json.dumps(names() if sys.argv[1] == "names" else measure(sys.argv[1])))
