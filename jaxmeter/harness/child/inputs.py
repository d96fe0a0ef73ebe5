"""The inputs of a case, made once and kept; and variants whose inputs or results do not fit into memory."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy

from jaxmeter.harness.declare.declaration import ONE_COMPILED
from jaxmeter.harness.declare.workload import Workload
from jaxmeter.harness.plan.processes import TRACED
from jaxmeter.harness.probes import Context, run_probes
from jaxmeter.harness.probes.context import describe_failure
from jaxmeter.harness.probes.fit import compare_with_capacity
from jaxmeter.harness.programs.arguments import choose_static, draw_inputs, make_shapes, place_inputs, size_bytes
from jaxmeter.harness.programs.older_jax import copy_array, is_committed
from jaxmeter.harness.programs.program import count_equations
from jaxmeter.harness.programs.traps import list_wide
from jaxmeter.harness.record import Number, Outcome, Param, Status, write_bytes

LARGEST_BYTES = 64 * 2**20
"""Of a case's inputs; larger ones are made by each process, so that all that a run keeps takes little of the disk."""


@dataclass(frozen=True)
class Inputs:
    """The inputs of a case.

    Args:
      arguments: Positional arguments; for a stream, a tuple of argument tuples.
      wide: Dtypes of the suite's NumPy arrays that JAX converts to narrower dtypes.
    """

    arguments: tuple[Any, ...]
    wide: tuple[str, ...]


def find_inputs(workload: Workload, params: dict[str, Param], kept: Path) -> Inputs:
    """Return the inputs of a case from its file, or make and save them.

    Args:
      kept: The file of the case, in a folder that only the run's processes write.
    """
    if kept.exists():
        return _read(kept)
    made = draw_inputs(workload, params)
    inputs = Inputs(place_inputs(workload, made), list_wide(made))
    if size_bytes(inputs.arguments) <= LARGEST_BYTES and all(map(_is_plain, jax.tree.leaves(inputs.arguments))):
        _keep(inputs, kept)
    return inputs


def _is_plain(leaf: Any) -> bool:
    """Return whether a saved leaf is the same when read: a jax.Array not committed to a device, and no random key.

    A NumPy array is not the same: the alignment of its memory can be the subject of the measurement.
    """
    return (
        isinstance(leaf, jax.Array)
        and not is_committed(leaf)
        and not leaf.aval.weak_type
        and not jax.numpy.issubdtype(leaf.dtype, jax.dtypes.extended)
    )


def _keep(inputs: Inputs, kept: Path) -> None:
    """Write the inputs, if possible: a suite's own tree may refuse NumPy arrays, or contain a local function."""
    with suppress(Exception):
        arrays = jax.tree.map(numpy.asarray, inputs.arguments)
        write_bytes(kept, pickle.dumps(Inputs(arrays, inputs.wide), protocol=5), lasting=False)


def _read(kept: Path) -> Inputs:
    """Read the inputs into JAX's own buffers: on a CPU, JAX would share NumPy's buffers and could not donate them.

    An array that occurs several times, as in each tuple of a stream, is copied once.
    """
    inputs: Inputs = pickle.loads(kept.read_bytes())  # a process of this run wrote the file
    arrays, tree = jax.tree.flatten(inputs.arguments)
    copied = {id(array): copy_array(array) for array in {id(array): array for array in arrays}.values()}
    arguments = jax.tree.unflatten(tree, [copied[id(array)] for array in arrays])
    return Inputs(tuple(arguments), inputs.wide)


ONLY_TRACED = "traced, and not compiled"


def probe_shapes(assignments: Mapping[str, Collection[str]], context: Context) -> dict[str, dict[str, Outcome]]:
    """Return outcomes only of the variants that do not fit, and of those that are only traced.

    Runs in a process of its own: what a suite's code keeps from tracing ends with the process.

    Args:
      assignments: Probe of the check -> variants; or that of compilation -> those that are only traced.
    """
    workload = context.workload
    try:
        shapes = context.arguments = make_shapes(workload, context.params)
    except Exception:  # noqa: BLE001  inputs may be made without JAX; then making them shows their size
        return {}
    # Shapes do not specify how arrays are distributed over several devices.
    capacity = None if context.capacity_bytes is None else context.capacity_bytes * jax.device_count()
    context.too_large = compare_with_capacity(size_bytes(shapes), capacity)
    if TRACED in assignments:
        return {variant: {TRACED: _count_equations(variant, context)} for variant in assignments[TRACED]}
    outcomes = {}
    for variant in dict.fromkeys(name for names in assignments.values() for name in names):
        own = [probe for probe, names in assignments.items() if variant in names]
        implementation, mode = context.find_variant(variant)
        if context.too_large is not None:
            outcomes[variant] = _plan(variant, own, context)
        elif mode == "eager" and not workload.declaration.stream:
            context.variant = variant
            context.stage("trace")
            needed = _count_arguments_and_results(implementation.function, context)
            if (excess := compare_with_capacity(needed, capacity)) is not None:
                outcomes[variant] = dict.fromkeys(own, Outcome(status=Status.TOO_LARGE, reason=excess))
    return outcomes


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
    outcomes, _ = run_probes(dict.fromkeys(probes, (variant,)), context)
    return outcomes.get(variant, {})
