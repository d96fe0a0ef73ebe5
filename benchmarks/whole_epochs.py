"""How long the whole epochs of the training suites take here, the first and a second one; and their evaluations.

    python -m benchmarks.whole_epochs [--select toy_epoch]

Each variant of each case that `--full` alone has, in a fresh process: the first pass with all that it compiles, the
second without. One process gives no interval; `nox -s cpu -- --full --select toy_epoch` has some, and takes hours
where an epoch takes minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator

from benchmarks.here import describe_here
from jaxmeter.harness.declare.catalogue import DEFAULT_SUITES, find_suites
from jaxmeter.harness.declare.workload import Workload
from jaxmeter.harness.machine.platforms import BACKENDS
from jaxmeter.harness.plan.cases import name_case
from jaxmeter.harness.record import Param

SUITES = (DEFAULT_SUITES,)
EPOCHS = (
    "mlp_toy_epoch",
    "mlp_epoch",
    "mlp_epoch_on_device",
    "mlp_evaluation",
    "toy_epoch",
    "loaded_mnist_epoch",
    "cnn_epoch",
)
CPU = BACKENDS["cpu"]
PASSES = 2
WITHOUT_CACHE = {**os.environ, "JAX_ENABLE_COMPILATION_CACHE": "false", "JAX_PLATFORMS": "cpu"}


def main() -> None:
    """Prints a line for each variant."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--select", choices=EPOCHS)
    parser.add_argument("--variant", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.variant:
        name, params, variant = given.variant
        print(json.dumps(list(time_passes(find_workload(name), json.loads(params), variant))))
        return
    print(describe_here("jax", "numpy"), flush=True)
    for name in (given.select,) if given.select else EPOCHS:
        workload = find_workload(name)
        for params in list_whole(workload):
            for variant in list_variants(workload, params):
                seconds = measure_apart(name, params, variant)
                told = ", ".join(f"{one:.2f}" for one in seconds)
                print(f"{name_case(name, params, CPU)} {variant}: {told} s", flush=True)


def find_workload(name: str) -> Workload:
    """The workload of that name among the project's suites."""
    return next(one for suite in find_suites(SUITES) for one in suite.workloads if one.name == name)


def list_whole(workload: Workload) -> list[dict[str, Param]]:
    """The cases that the full level alone has, at the size of their source; all where they are of every level."""
    full, shorter = (list(workload.list_cases(level, CPU.device)) for level in ("full", "default"))
    return [params for params in full if params not in shorter] or full


def list_variants(workload: Workload, params: dict[str, Param]) -> Iterator[str]:
    """Those that this case measures."""
    for item in workload.implementations:
        if item.raises is None and item.find_skip(params, CPU.device) is None:
            yield from (f"{item.name}:{mode}" for mode in item.modes)


def measure_apart(name: str, params: dict[str, Param], variant: str) -> list[float]:
    """Seconds of each pass, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.whole_epochs", "--variant", name, json.dumps(params), variant]
    ended = subprocess.run(command, env=WITHOUT_CACHE, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"{name} {variant}: {ended.stderr.splitlines()[-1] if ended.stderr else ended.returncode}")
    passes: list[float] = json.loads(ended.stdout.splitlines()[-1])
    return passes


def time_passes(workload: Workload, params: dict[str, Param], variant: str) -> Iterator[float]:
    """Seconds of the first pass, with what it compiles, and of later ones, each from the same state and waited for."""
    from jaxmeter.harness.probes import Context
    from jaxmeter.harness.programs.arguments import make_inputs

    context = Context(workload, params, CPU, make_inputs(workload, params), time.perf_counter, folder=None)
    start = time.perf_counter()
    prepared = context.prepare(variant)
    prepared_s = time.perf_counter() - start
    for index in range(PASSES):
        prepared.reset()
        start = time.perf_counter()
        prepared.wait(prepared.call(*prepared.args))
        yield time.perf_counter() - start + (prepared_s if index == 0 else 0.0)


if __name__ == "__main__":
    main()
