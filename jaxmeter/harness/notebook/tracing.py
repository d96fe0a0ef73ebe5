"""A function of a user in the modes `jit` and `aot`: its static arguments, and changes in place that jit would lose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

import jax

from jaxmeter.harness.notebook.state import UserState
from jaxmeter.harness.programs.arguments import (
    Arguments,
    Path,
    RefusedError,
    find_argument_names,
    find_fixed,
    is_traced,
    name_leaf,
    needs_concrete,
    refuse_hidden_arrays,
    split,
)
from jaxmeter.harness.programs.modes import Clock, Stage, Stages, as_new_function, compile_in_stages

MOST_NAMES = 3
"""Names of a list in a sentence."""

RETURN_CHANGES = "take what changes as an argument, and return its new value"
"""What a person can do where no transformation keeps such changes."""


class LostChangesError(RefusedError):
    """A function changes its state in place, which `jax.jit` does not see."""


class OtherChangesError(Exception):
    """A function does not change in place what the reference changes: its result is another one."""


@dataclass(frozen=True)
class Compiled:
    """A function compiled for its arguments.

    Args:
      jitted: Of what is traced alone.
      fixed: Names of the numbers that are static, since tracing them fails.
      once: Names of what the function changes in place while it is traced, and in no call after that.
    """

    stages: Stages
    jitted: Any
    arguments: Arguments
    fixed: tuple[str, ...]
    once: tuple[str, ...]


def compile_function(
    name: str,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    state: UserState,
    clock: Clock,
    stage: Stage,
) -> Compiled:
    """Trace, lower and compile a function for these arguments.

    Raises:
      LostChangesError: It changes arrays in place that it does not return.
      Whatever JAX raises of it, where no number among the arguments can be made static instead.
    """
    once: dict[str, None] = {}
    watched = _watch(name, function, state, once)

    def jit(arguments: Arguments) -> tuple[Any, Callable[..., Any]]:
        of_traced = arguments.close_over(watched)
        return jax.jit(as_new_function(of_traced)), of_traced

    def trace(arguments: Arguments) -> Any:
        try:
            return jit(arguments)[0].trace(*arguments.traced[0], **arguments.traced[1])
        finally:
            state.put_back()

    fixed: tuple[Path, ...] = ()
    try:
        arguments = split(args, kwargs)
        refuse_hidden_arrays(arguments, find_argument_names(function))
        jitted, of_traced = jit(arguments)
        stages = compile_in_stages(jitted, of_traced, *arguments.traced, clock, stage)
    except Exception as error:
        if type(error).__name__ == "TraceContextError":  # of flax.nnx
            advice = f"take its model as an argument, and measure nnx.jit({name})"
            raise LostChangesError(describe_lost(name, ["an nnx.Variable that is no argument"], advice)) from error
        if not needs_concrete(error):
            raise
        state.put_back()
        fixed = find_fixed(trace, args, kwargs)
        arguments = split(args, kwargs, fixed)
        jitted, of_traced = jit(arguments)
        stages = compile_in_stages(jitted, of_traced, *arguments.traced, clock, stage)
    finally:
        state.put_back()
    names = find_argument_names(function)
    return Compiled(stages, jitted, arguments, tuple(name_leaf(path, names) for path in fixed), tuple(once))


def _watch(name: str, function: Callable[..., Any], state: UserState, once: dict[str, None]) -> Callable[..., Any]:
    """The function, which raises LostChangesError while it is traced where a change in place would be lost.

    Args:
      once: Gets the names of other changes in place.
    """
    names = find_argument_names(function)

    def find_lost(args: Any, before: set[int], returned: set[int], changed: list[Any]) -> tuple[list[str], str]:
        lost = [
            name_leaf(path, names)
            for path, leaf in jax.tree_util.tree_leaves_with_path(args)
            if isinstance(leaf, jax.core.Tracer) and id(leaf) not in before | returned
        ]
        is_of_nnx = bool(lost) and any(map(_is_of_nnx, jax.tree.leaves(args, is_leaf=_is_of_nnx)))
        for place, changed_name, value in changed:
            traced = [leaf for leaf in jax.tree.leaves(value) if isinstance(leaf, jax.core.Tracer)]
            if place.is_random or any(id(leaf) not in returned for leaf in traced):
                lost.append(changed_name)
            elif not traced:
                once[changed_name] = None
        return lost, f"measure nnx.jit({name}), or return the new values" if is_of_nnx else RETURN_CHANGES

    @wraps(function)
    def watched(*args: Any, **kwargs: Any) -> Any:
        before = {id(leaf) for leaf in jax.tree.leaves((args, kwargs))}
        changed = None
        try:
            result = function(*args, **kwargs)
            changed = list(state.list_changed(in_trace=True))
            returned = {id(leaf) for leaf in jax.tree.leaves(result)}
            lost, advice = find_lost((args, kwargs), before, returned, changed)
            if lost:
                raise LostChangesError(describe_lost(name, lost, advice))
            # A model that is returned may hold functions, which are no output of a program.
            return jax.tree.map(lambda leaf: None if _is_static_output(leaf) else leaf, result)
        finally:
            state.drop_tracers(changed)

    return watched


def _is_static_output(leaf: Any) -> bool:
    return (callable(leaf) or isinstance(leaf, str | bytes)) and not is_traced(leaf)


def _is_of_nnx(item: Any) -> bool:
    return any(kind.__module__.startswith("flax.nnx") for kind in type(item).__mro__)


def describe_lost(name: str, lost: Sequence[str], advice: str = RETURN_CHANGES) -> str:
    """Why a function is not compiled: which changes would be lost, and what to measure instead."""
    return (
        f"{name} changes {list_names(lost)} in place; jax.jit loses such changes, and XLA removes the work that only "
        f"they need; {advice}"
    )


def list_names(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    return ", ".join(names[:MOST_NAMES]) + (f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else "")
