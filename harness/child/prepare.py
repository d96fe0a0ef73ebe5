"""A case's arguments and variants in the process that works on them: made, prepared, looked at by probes."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from functools import partial, update_wrapper
from typing import Any

import jax
import numpy

from harness.declare.implementation import NATIVE
from harness.declare.levels import call_with, find_wanted_params
from harness.declare.workload import Workload
from harness.machine.environment import private
from harness.plan.messages import CHECK
from harness.probes import PROBES, Context
from harness.probes.context import as_numpy
from harness.probes.memory import does_not_fit, peak_bytes
from harness.programs.modes import How, Prepared, Stage, prepared_as
from harness.record import DOES_NOT_FIT, Outcome, Param, Status

Beat = Callable[[str | None, str], None]

NUMERICS = "numerics"
INPUT_SEED = 0
"""Data values change speed (and power), so every process of every run gets the same."""


def no_beat(variant: str | None, stage: str) -> None:
    """For callers without a watcher."""


def inputs(workload: Workload, params: dict[str, Param]) -> tuple[Any, ...]:
    """A workload's arguments, ready where they belong; of a stream, a tuple of argument tuples."""
    made = call_with(workload.declaration.inputs, params, jax.random.key(INPUT_SEED))
    on_host = workload.find_positions(workload.declaration.needs.host)

    def placed(arguments: Any) -> tuple[Any, ...]:
        return tuple(
            jax.tree.map(numpy.asarray if place in on_host else jax.numpy.asarray, argument)
            for place, argument in enumerate(as_tuple(arguments))
        )

    arguments = tuple(map(placed, made)) if workload.declaration.stream else placed(made)
    return tuple(jax.block_until_ready(arguments))


def as_tuple(arguments: Any) -> tuple[Any, ...]:
    """What inputs() returns, one array or a tuple of arguments, as a tuple."""
    return arguments if isinstance(arguments, tuple) else (arguments,)


def static(function: Callable[..., Any], params: dict[str, Param]) -> dict[str, Param]:
    """The params that a function takes."""
    return {name: params[name] for name in find_wanted_params(function, params)}


def prepare(variant: str, context: Context, stage: Stage = lambda name: None) -> Prepared:
    """A variant of the context's workload, ready to be called."""
    workload = context.workload
    implementation, mode = workload.find_variant(variant)
    function = implementation.function
    if fixed := static(function, context.params):
        # With its name, which programs and traces carry.
        function = update_wrapper(partial(function, **fixed), function)
    arguments = jax.tree.map(as_numpy, context.arguments) if mode == NATIVE else context.arguments
    how = How(
        carry=workload.carried,
        donate=workload.find_positions(implementation.donate),
        convert=implementation.convert,
        stream=workload.declaration.stream,
    )
    return prepared_as(mode, function, arguments, how, context.clock, stage)


def outcomes_of(
    variant: str,
    kind: str,
    probes: tuple[str, ...],
    context: Context,
    beat: Beat = no_beat,
    *,
    too_large: str | None = None,
) -> dict[str, Outcome]:
    """Runs per-variant probes of one kind on one variant; what they raise is an outcome.

    Args:
      too_large: Why the variant cannot be called, if that is known.
    """
    at = "prepare"

    def stage(name: str) -> None:
        nonlocal at
        at = name
        beat(variant, name)

    stage(at)
    context.stage = stage
    if (expected := context.workload.find_variant(variant)[0].raises) is not None:
        return {NUMERICS: _raised(expected, variant, context, stage)}
    try:
        prepared = prepare(variant, context, stage)
    except Exception as error:  # noqa: BLE001  a suite's code may raise anything, and that is a result
        return {probe: failure(error, at) for probe in probes}
    if kind == CHECK and prepared.stages is not None:
        # The plan knows better than the arguments alone: also temporaries, and arguments that are not used.
        planned = does_not_fit(peak_bytes(prepared.stages.compiled, context), context.capacity_bytes)
        too_large = planned or (None if too_large is None else f"{too_large} for its arguments alone")
    outcomes = {}
    for probe in probes:
        if too_large is not None and PROBES[kind, probe].calls:
            outcomes[probe] = Outcome(status=Status.UNSUPPORTED, reason=too_large)
            continue
        try:
            if probe == NUMERICS:
                at = "reference"
                beat(None, at)  # common to all variants
                _ = context.reference
            stage(probe)
            prepared.reset()
            outcomes[probe] = PROBES[kind, probe].run(variant, prepared, context)
        except Exception as error:  # noqa: BLE001  as above
            outcomes[probe] = failure(error, at)
    return outcomes


def _raised(expected: type[Exception], variant: str, context: Context, stage: Stage) -> Outcome:
    """Whether a call raises what its implementation declares; the error's own words are the result."""
    try:
        prepared = prepare(variant, context, stage)
        stage(NUMERICS)
        prepared.wait(prepared.call(*prepared.args))
    except expected as error:
        words = " ".join(str(error).split())
        return Outcome(
            status=Status.OK, notes=(private(f"raises {type(error).__name__}, as declared: {words}")[:1000],)
        )
    except Exception as error:  # noqa: BLE001  a suite's code may raise anything, and that is a result
        return failure(error, NUMERICS)
    return Outcome(status=Status.WRONG, reason=f"raised nothing; it is declared to raise {expected.__name__}")


def failure(error: Exception, stage: str) -> Outcome:
    """A failed outcome: the stage, the error's own words, and the traceback where stderr would be.

    A compiler that finds a program too large for its device says what the plan of others tells: it does not fit.
    """
    words = " ".join(str(error).split())
    if stage == "compile" and "RESOURCE_EXHAUSTED" in words:
        return Outcome(status=Status.UNSUPPORTED, reason=private(f"{DOES_NOT_FIT}: {words}")[:1000])
    text = "".join(traceback.format_exception(error))
    return Outcome(
        status=Status.FAILED,
        reason=private(f"in stage '{stage}': {type(error).__name__}: {words}")[:1000],
        stderr=private(text)[-4000:],
    )
