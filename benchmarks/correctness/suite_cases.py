"""The smallest case of each workload of the suites that is one traced program on one device."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax

from benchmarks.correctness.program import Program
from jaxmeter.harness.declare.catalogue import DEFAULT_SUITES, find_suites
from jaxmeter.harness.declare.declaration import call_with
from jaxmeter.harness.declare.workload import Workload
from jaxmeter.harness.programs.arguments import as_tuple, choose_static
from jaxmeter.harness.record import NATIVE


def list_programs() -> Iterator[Program]:
    """A program of each workload that has such a case."""
    for suite in find_suites((DEFAULT_SUITES,)):
        for workload in suite.workloads:
            program = _make(workload)
            if program is not None:
                yield program


def _make(workload: Workload) -> Program | None:
    declared = workload.declaration
    cases = (case for level in ("quick", "default", "full") for case in workload.list_cases(level, "cpu"))
    params = next(cases)
    config = workload.find_config(params)
    implementation, mode = workload.find_variant(workload.baseline_variant)
    is_one_program = mode in ("eager", "jit") and not declared.stream and not declared.needs.host
    if not is_one_program or workload.count_devices(params) > 1 or "jax_num_cpu_devices" in config:
        return None
    if declared.compare is not None or declared.data is not None or mode == NATIVE:
        return None  # what compare() sees of a planted fault is the suite's own affair, which its tests hold

    def make(key: Any) -> tuple[Any, ...]:
        made = as_tuple(call_with(declared.inputs, params, jax.random.key(0)))
        return tuple(jax.tree.map(jax.numpy.asarray, made))

    static = choose_static(implementation.function, params)
    return Program(
        f"suite {workload.name}",
        partial(implementation.function, **static) if static else implementation.function,
        make,
        reference=partial(call_with, declared.reference, params),
        x64=bool(config.get("jax_enable_x64", False)),
        tolerance=declared.tolerance,
    )
