"""Twelve jitted functions of our suites with their smallest inputs: as calls for any harness, and as a suite for ours.

Ours finds each function declared twice, so that one run compares it with itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from itertools import chain
from typing import Any

import jax

from jaxmeter import no_reference, workload
from jaxmeter.harness.declare.workload import Workload
from jaxmeter.harness.programs.arguments import choose_static, make_inputs
from jaxmeter.suites import (
    attention,
    cnn,
    compile_time,
    cumulative_sum,
    derivatives,
    fusion,
    matmul,
    mlp,
    random_numbers,
    selu,
    vectorization,
)

FUNCTIONS: dict[str, tuple[Workload, str]] = {
    "selu": (selu.selu, "selu"),
    "matmul": (matmul.matmul, "matmul"),
    "mlp_step": (mlp.mlp_step, "step"),
    "cumulative_sum": (cumulative_sum.cumulative_sum, "scan"),
    "attention": (attention.attention, "naive"),
    "cnn_step": (cnn.cnn_step, "cnn_step"),
    "operations": (compile_time.operations, "operations"),
    "jacobian": (derivatives.jacobian, "jacfwd"),
    "fusion": (fusion.fusion, "fusion"),
    "random_normal": (random_numbers.random_normal, "threefry2x32"),
    "sum_first_n": (vectorization.sum_first_n, "mask"),
    "branch": (vectorization.branch, "cond"),
}
"""By name: the workload and its implementation. Each has one program on one device."""

CASES = tuple(FUNCTIONS)


def find_function(case: str) -> Callable[..., Any]:
    """The function of a case, with its params."""
    declared, implementation = FUNCTIONS[case]
    function = next(item.function for item in declared.implementations if item.name == implementation)
    return partial(function, **choose_static(function, _params(case)))


@cache
def build(case: str) -> Callable[[], object]:
    """One call until its result is ready. It is compiled and called once here, in the process that asks first."""
    call, arguments = jax.jit(find_function(case)), find_arguments(case)

    def run() -> object:
        return jax.block_until_ready(call(*arguments))

    run()
    return run


def find_arguments(case: str) -> tuple[Any, ...]:
    """The inputs of a case."""
    return make_inputs(FUNCTIONS[case][0], _params(case))


def _params(case: str) -> dict[str, Any]:
    declared = FUNCTIONS[case][0]
    return next(chain(declared.list_cases("quick", "cpu"), declared.list_cases("default", "cpu")))


@workload(
    inputs=lambda key, *, case: (find_arguments(case),),
    params={"case": CASES},
    reference=no_reference("both implementations are the same function, which its own suite checks"),
    modes=("jit",),
    implementation="one",
)
def twelve(arguments: Any, *, case: str) -> Any:
    """One of the twelve functions."""
    return find_function(case)(*arguments)


@twelve.implementation
def same(arguments: Any, *, case: str) -> Any:
    """The same once more."""
    return find_function(case)(*arguments)
