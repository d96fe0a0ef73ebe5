"""`jaxmeter.measure(fn, *args)`: the same machinery in miniature, inside the process that calls it.

One process gives no interval between processes, and its compile times are not those of a fresh one; the result says so.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from jaxmeter.harness.machine.ranks import refuse_ranks
from jaxmeter.harness.notebook.callables import Given, describe_callable
from jaxmeter.harness.notebook.measurement import Measurement
from jaxmeter.harness.notebook.options import Options

Function = Callable[..., Any] | tuple[Callable[..., Any], tuple[Any, ...]]
"""A callable; with others, alternatively with positional arguments of its own: `(f, (a, b))`."""

Functions = Callable[..., Any] | Mapping[str, Function]


@dataclass(frozen=True)
class Measure:
    """`measure(function, *args, **kwargs)` measures a call; `measure.with_options(...)` changes how."""

    options: Options = field(default_factory=Options)

    def with_options(self, **options: Any) -> Measure:
        """The same with other options: `measure.with_options(modes=("jit",), tolerance=1e-3)(step, state, batch)`.

        Args:
          options: Those of `Options`: modes, tolerance, time_limit_s, progress, carry, most_calls, trace, comparable.
        Raises:
          TypeError: There is no such option.
          ValueError: An option has no such value.
        """
        known = [item.name for item in fields(Options)]
        for name in options:
            if name not in known:
                raise TypeError(f"measure has no option '{name}'; options are {', '.join(known)}")
        return Measure(replace(self.options, **options))

    def __call__(self, functions: Functions, /, *args: Any, **kwargs: Any) -> Measurement:
        """Measure a call in this process: each function in each of its modes, interleaved.

        Args:
          functions: A callable, or several by name; it is called exactly as it is. The first is the baseline of
            speedups. A function with arguments of its own, `{"old": (f, (a, b))}`, gets only those.
          args: Its arguments. Arrays and Python's numbers are traced, other leaves are static.
          kwargs: Its keyword arguments.
        Returns:
          Times, compile stages and memory of each variant, and whether all give the same result.
        Raises:
          TypeError: What is passed cannot be called, or returns a generator.
          ValueError: The call has an impossible form, or this process is one of several ranks.
          jaxmeter.harness.notebook.state.StateError: What the function could change in place is too large to be kept.
          Whatever the function itself raises when it is called eagerly.
        """
        import jax  # here, so that declaring suites needs no jax

        from jaxmeter.harness.notebook.one_process import measure_here
        from jaxmeter.harness.notebook.state import State

        if (problem := refuse_ranks(os.environ) or refuse_ranks({}, jax.process_count())) is not None:
            raise ValueError(problem)
        given = _describe_all(functions)
        if (args or kwargs) and all(item.args is not None for item in given.values()):
            raise ValueError("every function has its own arguments; pass no shared arguments")
        calls = [
            (item.function, args, kwargs) if item.args is None else (item.function, item.args, {})
            for item in given.values()
        ]
        state = State.of_calls(calls)
        state.keep()
        try:
            return measure_here(given, args, kwargs, state, self.options)
        finally:
            state.put_back()


measure = Measure()


def _describe_all(functions: Functions) -> dict[str, Given]:
    if not isinstance(functions, Mapping):
        given = describe_callable(functions)
        return {given.name: given}
    if not functions:
        raise ValueError('no function to measure; pass one, or several by name: {"old": f, "new": g}')
    for name in functions:
        if not _is_name(name):
            raise ValueError(f'a function\'s name must be a text without a colon, as in {{"old": f}}; got {name!r}')
    return {name: _describe_one(function, name) for name, function in functions.items()}


def _describe_one(function: Any, name: str) -> Given:
    if not isinstance(function, tuple | list):
        return describe_callable(function, name)
    if not (len(function) == 2 and callable(function[0]) and isinstance(function[1], tuple)):
        raise ValueError(
            f"'{name}' must be a function, or a function with a tuple of its positional arguments, as in "
            f'{{"{name}": (f, (a, b))}}; keyword arguments go into functools.partial(f, mask=mask)'
        )
    return replace(describe_callable(function[0], name), args=function[1])


def _is_name(name: object) -> bool:
    return isinstance(name, str) and name != "" and ":" not in name
