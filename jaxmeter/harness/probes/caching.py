"""What a call costs in each cache state: a fresh process for each, proven by what JAX reports, or unnamed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import msgspec

from jaxmeter.harness.plan.probes import DEFAULT_THRESHOLD
from jaxmeter.harness.probes.context import Context, Findings, describe_failure
from jaxmeter.harness.programs.arguments import choose_static, make_inputs
from jaxmeter.harness.programs.jax_events import (
    JaxEvents,
    describe_silent_event,
    find_silent_events,
    forget_compiled,
    watch_jax,
)
from jaxmeter.harness.programs.modes import Clock, as_new_function
from jaxmeter.harness.programs.older_jax import jit
from jaxmeter.harness.record import CacheStateCall, CachingDetails, Number, Outcome, Param, Status


@dataclass(frozen=True)
class CallArguments:
    """Arguments of one call: arrays, and static ones by name."""

    arguments: tuple[Any, ...]
    static: dict[str, Any]


@dataclass(frozen=True)
class CacheState:
    """A state of the caches.

    Args:
      before: Which calls of the same function the process has made: none, or one with the usual arguments.
      proof: Whether what JAX reported shows that the caches were in that state.
      change: Whether the measured call is to the usual one what the cache state says.
      cached: Whether the persistent cache stays on.
    """

    before: bool
    proof: Callable[[JaxEvents], bool]
    change: Callable[[CallArguments, CallArguments], bool] = lambda usual, measured: True
    cached: bool = False


def _compiled(seen: JaxEvents) -> bool:
    return seen.traces > 0 and seen.compiled > 0 and seen.hits == 0


def _read(seen: JaxEvents) -> bool:
    return seen.hits > 0 and seen.compiled == 0


def _looked_up(seen: JaxEvents) -> bool:
    """Return whether a program was read from the cache or compiled again; the counts distinguish these."""
    return seen.traces > 0 and seen.requested > 0


def _reused(seen: JaxEvents) -> bool:
    return seen.traces == 0 and seen.compiled == 0 and seen.hits == 0


def _types(call: CallArguments) -> list[tuple[tuple[int, ...], Any]]:
    return [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(call.arguments)]


def _has_another_shape(usual: CallArguments, measured: CallArguments) -> bool:
    return [shape for shape, _ in _types(usual)] != [shape for shape, _ in _types(measured)]


def _has_another_static_argument(usual: CallArguments, measured: CallArguments) -> bool:
    return usual.static != measured.static and _types(usual) == _types(measured)


CACHE_STATES = {
    "cold": CacheState(before=False, proof=_compiled),
    "cached": CacheState(before=False, proof=_read, cached=True),
    "warm": CacheState(before=True, proof=_reused),
    DEFAULT_THRESHOLD: CacheState(before=False, proof=_looked_up, cached=True),
    "new_shape": CacheState(before=True, proof=_compiled, change=_has_another_shape),
    "new_static": CacheState(before=True, proof=_compiled, change=_has_another_static_argument),
}


def probe_variants(variants: tuple[str, ...], context: Context) -> Findings:
    """Times one call of each variant in the process's cache state; of a stream, one pass."""
    workload, case = context.workload, context.case
    changed = {} if case is None else {"new_shape": case.new_shape, "new_static": case.new_static}
    params = {**context.params, **(changed.get(context.cache_state) or {})}
    context.stage("inputs")
    try:
        arguments = context.arguments if params == context.params else make_inputs(workload, params)
    except Exception as error:  # noqa: BLE001  a suite's code may raise anything, and that is a result
        return Findings({variant: describe_failure(error, "inputs") for variant in variants})
    forget_compiled(persistent=not CACHE_STATES[context.cache_state].cached)
    outcomes = {}
    for variant in variants:
        context.variant = variant
        implementation = context.find_variant(variant)[0]
        function = implementation.function
        try:
            call = time_call(
                context.cache_state,
                as_new_function(function),
                usual=CallArguments(context.arguments, choose_static(function, context.params)),
                measured=CallArguments(arguments, choose_static(function, params)),
                stream=workload.declaration.stream,
                compiler_options=implementation.compiler_options,
                clock=context.clock,
                stage=context.stage,
            )
        except Exception as error:  # noqa: BLE001  as above
            outcomes[variant] = describe_failure(error, context.at)
            continue
        silent = find_silent_events()  # asked here, since it compiles: the call has been timed
        call = msgspec.structs.replace(call, proven=call.proven and not silent)
        values: dict[str, tuple[Number | None, ...]] = (
            {f"{call.cache_state}_s": (call.elapsed_s,)} if call.proven else {}
        )
        notes = tuple(map(describe_silent_event, silent))
        outcomes[variant] = Outcome(status=Status.OK, values=values, notes=notes, details=CachingDetails(calls=(call,)))
    return Findings(outcomes)


def time_call(
    name: str,
    function: Callable[..., Any],
    *,
    usual: CallArguments,
    measured: CallArguments,
    stream: bool,
    clock: Clock,
    stage: Callable[[str], None],
    compiler_options: Mapping[str, Param] | None = None,
) -> CacheStateCall:
    """Time one call of the jitted function; for a stream, one pass.

    Args:
      name: The cache state.
      function: The function to be jitted; its keyword arguments are static.
      usual: The call before, in cache states that have one.
      measured: The call that is timed.
      stage: Receives the name of each stage that begins.
      compiler_options: XLA's options for compiling it, by name.
    """
    cache_state = CACHE_STATES[name]
    if not cache_state.change(usual, measured):
        return CacheStateCall(cache_state=name, proven=False)
    jitted = jit(function, compiler_options or {}, static_argnames=tuple(usual.static))

    def once(call: CallArguments) -> None:
        items = call.arguments if stream else (call.arguments,)
        jax.block_until_ready([jitted(*item, **call.static) for item in items])

    if cache_state.before:
        stage("call before")
        once(usual)
    stage(f"{name} call")
    with watch_jax() as seen:
        start = clock()
        once(measured)
        elapsed_s = clock() - start
    return CacheStateCall(
        cache_state=name,
        proven=cache_state.proof(seen),
        elapsed_s=elapsed_s,
        traces=seen.traces,
        compiled=seen.compiled,
        hits=seen.hits,
        misses=seen.misses,
    )
