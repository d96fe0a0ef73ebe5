"""How an implementation is executed: one function per mode, each returns a `Prepared` call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import jax

Clock = Callable[[], float]


@dataclass(frozen=True)
class Stages:
    """A compiled program with the time of each stage, in seconds."""

    traced: Any
    lowered: Any
    compiled: Any
    trace_s: float
    lower_s: float
    compile_s: float


@dataclass(frozen=True)
class Prepared:
    """All that a probe sees of a variant: `wait(call(*args))` is one call until its result is ready.

    `stages` is None where there is no program of its own (eager code, peers); `dispatches` tells whether a call
    returns before its result is ready.
    """

    call: Callable[..., Any]
    args: tuple[Any, ...]
    wait: Callable[[Any], Any]
    stages: Stages | None = None
    dispatches: bool = True


def prepare_eager(function: Callable[..., Any], args: tuple[Any, ...], clock: Clock) -> Prepared:
    """Operation by operation, as JAX runs code without jit."""
    return Prepared(function, args, jax.block_until_ready)


def prepare_jit(function: Callable[..., Any], args: tuple[Any, ...], clock: Clock) -> Prepared:
    """`jax.jit(function)`: called through its own dispatch. The stages are taken first; the call reuses them."""
    jitted = jax.jit(_fresh(function))
    return Prepared(jitted, args, jax.block_until_ready, _stages(jitted, args, clock))


def prepare_aot(function: Callable[..., Any], args: tuple[Any, ...], clock: Clock) -> Prepared:
    """`jax.jit(function).lower(*args).compile()`: the compiled object is called itself."""
    stages = _stages(jax.jit(_fresh(function)), args, clock)
    return Prepared(stages.compiled, args, jax.block_until_ready, stages)


def prepare_native(function: Callable[..., Any], args: tuple[Any, ...], clock: Clock) -> Prepared:
    """A peer: called as it is; its result is ready when it returns."""
    return Prepared(function, args, _already_ready, dispatches=False)


PREPARE: dict[str, Callable[[Callable[..., Any], tuple[Any, ...], Clock], Prepared]] = {
    "eager": prepare_eager,
    "jit": prepare_jit,
    "aot": prepare_aot,
    "native": prepare_native,
}


def _stages(jitted: Any, args: tuple[Any, ...], clock: Clock) -> Stages:
    start = clock()
    traced = jitted.trace(*args)
    after_trace = clock()
    lowered = traced.lower()
    after_lower = clock()
    compiled = lowered.compile()
    end = clock()
    return Stages(traced, lowered, compiled, after_trace - start, after_lower - after_trace, end - after_lower)


def _fresh(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function as a new object: jax reuses what this process has compiled for the old one."""

    @wraps(function)
    def same(*args: Any) -> Any:
        return function(*args)

    return same


def _already_ready(result: Any) -> Any:
    return result
