"""What does not fit by the shapes of its arguments and results alone, before anything is made."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax

from harness.child.prepare import INPUT_SEED, Beat, as_tuple, outcomes_of, static
from harness.declare.levels import call_with
from harness.plan.messages import CHECK, Launch, Result
from harness.probes import Context
from harness.probes.memory import does_not_fit, size_bytes
from harness.record import Outcome, Status

COMPILED = ("jit", "aot")
"""Modes with one program of their own."""


def look_at_shapes(message: Launch, context: Context, beat: Beat) -> Result:
    """Outcomes of the variants that do not fit; nothing else is answered.

    In a process of its own: what a suite's code keeps of being traced ends with it.
    """
    workload = context.workload
    make = partial(call_with, workload.declaration.inputs, context.params)
    try:
        made = jax.eval_shape(make, jax.random.key(INPUT_SEED))
    except Exception:  # noqa: BLE001  inputs may be made in any way, also without JAX; then making them tells
        return Result()
    shapes = context.arguments = tuple(map(as_tuple, made)) if workload.declaration.stream else as_tuple(made)
    # Shapes do not tell which of several devices would hold how much.
    capacity = None if context.capacity_bytes is None else context.capacity_bytes * jax.device_count()
    if reason := does_not_fit(size_bytes(shapes), capacity):
        return Result(outcomes={name: _planned(name, message.probes, reason, context) for name in message.variants})
    found = {}
    for name in message.variants:
        implementation, mode = workload.find_variant(name)
        if mode == "eager" and not workload.declaration.stream:
            beat(name, "trace")
            needed = _arguments_and_results(implementation.function, context)
            if reason := does_not_fit(needed, capacity):
                found[name] = dict.fromkeys(message.probes, Outcome(status=Status.UNSUPPORTED, reason=reason))
    return Result(outcomes=found)


def _arguments_and_results(function: Callable[..., Any], context: Context) -> int | None:
    """Bytes that a call holds at least; None for code that cannot be traced."""
    try:
        results = jax.eval_shape(partial(function, **static(function, context.params)), *context.arguments)
    except Exception:  # noqa: BLE001  eager code may do what a trace cannot; then calling it tells
        return None
    return size_bytes((context.arguments, results))


def _planned(variant: str, probes: tuple[str, ...], reason: str, context: Context) -> dict[str, Outcome]:
    """What can be said of a variant whose arguments cannot be made: its program's plan, from their shapes."""
    mode = context.workload.find_variant(variant)[1]
    if context.workload.declaration.stream or mode not in COMPILED:
        return dict.fromkeys(probes, Outcome(status=Status.UNSUPPORTED, reason=f"{reason} for its arguments alone"))
    return outcomes_of(variant, CHECK, probes, context, too_large=reason)
