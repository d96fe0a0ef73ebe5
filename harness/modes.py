"""How an implementation is executed: one function per mode, each returns a `Prepared` call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import jax

from harness.compilations import Compilations, watched
from harness.workload import NATIVE

Clock = Callable[[], float]
Stage = Callable[[str], None]
"""Told the name of the stage that begins, so that a crash or a hang in it has a name."""


@dataclass(frozen=True)
class Stages:
    """A compiled program with the time of each stage, in seconds.

    Args:
      donated: Compiles the same function again with all its arguments donated.
      events: What jax reported meanwhile.
    """

    traced: Any
    lowered: Any
    compiled: Any
    trace_s: float
    lower_s: float
    compile_s: float
    donated: Callable[[], Any]
    events: Compilations


@dataclass(frozen=True)
class Prepared:
    """All that a probe sees of a variant: `wait(call(*args))` is one call until its result is ready.

    `stages` is None where there is no one program (eager code, peers, streams); `dispatches` tells whether a call
    returns before its result is ready.
    """

    call: Callable[..., Any]
    args: tuple[Any, ...]
    wait: Callable[[Any], Any]
    stages: Stages | None = None
    dispatches: bool = True


Prepare = Callable[[Callable[..., Any], tuple[Any, ...], Clock, Stage], Prepared]


def prepare_eager(function: Callable[..., Any], args: tuple[Any, ...], clock: Clock, stage: Stage) -> Prepared:
    """Operation by operation, as JAX runs code without jit."""
    return Prepared(function, args, jax.block_until_ready)


def prepare_jit(function: Callable[..., Any], args: tuple[Any, ...], clock: Clock, stage: Stage) -> Prepared:
    """`jax.jit(function)`: called through its own dispatch. The stages are taken first; the call reuses them."""
    jitted = jax.jit(fresh(function))
    return Prepared(jitted, args, jax.block_until_ready, _stages(jitted, function, args, clock, stage))


def prepare_aot(function: Callable[..., Any], args: tuple[Any, ...], clock: Clock, stage: Stage) -> Prepared:
    """`jax.jit(function).lower(*args).compile()`: the compiled object is called itself."""
    stages = _stages(jax.jit(fresh(function)), function, args, clock, stage)
    return Prepared(stages.compiled, args, jax.block_until_ready, stages)


def prepare_native(function: Callable[..., Any], args: tuple[Any, ...], clock: Clock, stage: Stage) -> Prepared:
    """A peer: called as it is; its result is ready when it returns."""
    return Prepared(function, args, _already_ready, dispatches=False)


PREPARE: dict[str, Prepare] = {
    "eager": prepare_eager,
    "jit": prepare_jit,
    "aot": prepare_aot,
    NATIVE: prepare_native,
}


def prepare_stream(mode: str, function: Callable[..., Any], items: tuple[tuple[Any, ...], ...]) -> Prepared:
    """A stream: one call is a pass over all its argument tuples, each with as many programs as it has types.

    Args:
      mode: eager, jit or native; an ahead-of-time program takes one type only.
    """
    call = jax.jit(fresh(function)) if mode == "jit" else function

    def one_pass(*items: tuple[Any, ...]) -> list[Any]:
        return [call(*item) for item in items]

    native = mode == NATIVE
    return Prepared(one_pass, items, _already_ready if native else jax.block_until_ready, dispatches=not native)


def _stages(jitted: Any, function: Callable[..., Any], args: tuple[Any, ...], clock: Clock, stage: Stage) -> Stages:
    with watched() as events:
        stage("trace")
        start = clock()
        traced = jitted.trace(*args)
        trace_s = clock() - start
        stage("lower")
        start = clock()
        lowered = traced.lower()
        lower_s = clock() - start
        stage("compile")
        start = clock()
        compiled = lowered.compile()
        compile_s = clock() - start

    def donated() -> Any:
        return jax.jit(fresh(function), donate_argnums=range(len(args))).lower(*args).compile()

    return Stages(traced, lowered, compiled, trace_s, lower_s, compile_s, donated, events)


def fresh(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function as a new object: jax reuses what this process has compiled for the old one."""

    @wraps(function)
    def same(*args: Any, **static: Any) -> Any:
        return function(*args, **static)

    return same


def _already_ready(result: Any) -> Any:
    return result
