"""Variants whose arguments and results do not fit into memory, by their shapes, before any array is made."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import jax

from jaxmeter.harness.declare.implementation import ONE_COMPILED
from jaxmeter.harness.plan.processes import TRACED
from jaxmeter.harness.probes import Context, look_with
from jaxmeter.harness.probes.fit import compare_with_capacity
from jaxmeter.harness.probes.look_at_each import describe_failure
from jaxmeter.harness.programs.arguments import choose_static, make_shapes, size_bytes
from jaxmeter.harness.programs.program import count_equations
from jaxmeter.harness.record import Number, Outcome, Status

ONLY_TRACED = "traced, and not compiled"


def look_at_shapes(looks: Mapping[str, Collection[str]], context: Context) -> dict[str, dict[str, Outcome]]:
    """Return outcomes only of the variants that do not fit, and of those that are only traced.

    Runs in a process of its own: what a suite's code keeps from tracing ends with the process.

    Args:
      looks: Which probe of the check looks at which variants; or that of compilation at those that are only traced.
    """
    workload = context.workload
    try:
        shapes = context.arguments = make_shapes(workload, context.params)
    except Exception:  # noqa: BLE001  inputs may be made without JAX; then making them shows their size
        return {}
    # Shapes do not specify how arrays are distributed over several devices.
    capacity = None if context.capacity_bytes is None else context.capacity_bytes * jax.device_count()
    context.too_large = compare_with_capacity(size_bytes(shapes), capacity)
    if TRACED in looks:
        return {variant: {TRACED: _count_equations(variant, context)} for variant in looks[TRACED]}
    found = {}
    for variant in dict.fromkeys(name for names in looks.values() for name in names):
        own = [probe for probe, names in looks.items() if variant in names]
        implementation, mode = context.find_variant(variant)
        if context.too_large is not None:
            found[variant] = _plan(variant, own, context)
        elif mode == "eager" and not workload.declaration.stream:
            context.variant = variant
            context.stage("trace")
            needed = _count_arguments_and_results(implementation.function, context)
            if (excess := compare_with_capacity(needed, capacity)) is not None:
                found[variant] = dict.fromkeys(own, Outcome(status=Status.TOO_LARGE, reason=excess))
    return found


def _count_equations(variant: str, context: Context) -> Outcome:
    """Return the outcome of a program that is traced and not compiled: its number of equations."""
    context.variant = variant
    context.stage("trace")
    function = context.find_variant(variant)[0].function
    try:
        traced = jax.jit(partial(function, **choose_static(function, context.params))).trace(*context.arguments)
    except Exception as error:  # noqa: BLE001  a suite's code may raise anything, and that is a result
        return describe_failure(error, context.at)
    values: dict[str, tuple[Number | None, ...]] = {name: (count,) for name, count in count_equations(traced).items()}
    return Outcome(status=Status.OK, values=values, notes=(ONLY_TRACED,))


def _count_arguments_and_results(function: Callable[..., Any], context: Context) -> int | None:
    """Bytes that a call holds at least; None for code that cannot be traced."""
    try:
        results = jax.eval_shape(partial(function, **choose_static(function, context.params)), *context.arguments)
    except Exception:  # noqa: BLE001  eager code may do what a trace cannot; then a call shows it
        return None
    return size_bytes((context.arguments, results))


def _plan(variant: str, probes: Sequence[str], context: Context) -> dict[str, Outcome]:
    """What can be said of a variant whose arguments cannot be made: its program's plan, from their shapes."""
    if context.workload.declaration.stream or context.find_variant(variant)[1] not in ONE_COMPILED:
        reason = f"{context.too_large} for its arguments alone"
        return dict.fromkeys(probes, Outcome(status=Status.TOO_LARGE, reason=reason))
    outcomes, _ = look_with(dict.fromkeys(probes, (variant,)), context)
    return outcomes.get(variant, {})
