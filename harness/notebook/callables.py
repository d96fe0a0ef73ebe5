"""What a user passes to be measured: which transformation it has, and the function without it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import FunctionType, MethodType
from typing import Any

from harness.declare.implementation import MODES
from harness.record import AS_GIVEN

CALLABLE_MODES = (AS_GIVEN, *MODES)
"""How a callable of a user can be executed."""


@dataclass(frozen=True)
class Given:
    """A callable as a user passes it.

    Args:
      name: For the table.
      function: What is called, exactly as the user would.
      base: The function or transformed callable that decides, without what is bound to it.
      bound: Positional arguments that come before those of the call, such as `self`.
      keywords: Keyword arguments of a `functools.partial`.
      plain: The function without its transformation, with what is bound; None where there is none.
    """

    name: str
    function: Callable[..., Any]
    base: Any
    bound: tuple[Any, ...]
    keywords: dict[str, Any]
    plain: Callable[..., Any] | None

    @property
    def is_transformed(self) -> bool:
        """Whether the callable decides itself how it is compiled: `jax.jit`, `nnx.jit`, `pmap`, a compiled program."""
        return hasattr(self.base, "lower") or is_program(self.base)

    @property
    def has_stages(self) -> bool:
        """Whether it can be traced or lowered by itself."""
        return hasattr(self.base, "lower")

    def choose_modes(self, asked: tuple[str, ...] | None) -> tuple[str, ...]:
        """Modes to measure it in: those that are asked for; what is transformed always as it is given."""
        if not self.is_transformed:
            return tuple(mode for mode in asked or MODES if mode != AS_GIVEN) or MODES
        if self.plain is None:
            return (AS_GIVEN,)
        rest = ("eager", "jit") if asked is None else asked
        return (AS_GIVEN, *(mode for mode in rest if mode != AS_GIVEN))


def is_program(base: Any) -> bool:
    """Whether it is a compiled program."""
    return hasattr(base, "memory_analysis") or hasattr(base, "runtime_executable")


def describe_callable(function: Any, name: str | None = None) -> Given:
    """What a callable is.

    Raises:
      TypeError: It cannot be called, or calling it does nothing until its result is read.
    """
    if not callable(function):
        hint = "; measure its .call" if hasattr(function, "call") else ""
        hint = "; measure its .compile()" if hasattr(function, "compile") else hint
        raise TypeError(f"a function is measured; got {type(function).__name__}, which cannot be called{hint}")
    base, bound, keywords = function, tuple[Any, ...](), dict[str, Any]()
    for _ in range(10):
        if isinstance(base, functools.partial):
            bound, keywords, base = (*base.args, *bound), {**base.keywords, **keywords}, base.func
        elif isinstance(base, MethodType):
            bound, base = (base.__self__, *bound), base.__func__
        elif (cached := _find_cached(base)) is not None:
            bound, base = (*cached, *bound), base.__wrapped__
        elif not hasattr(base, "lower") and hasattr(vars(type(base)).get("__call__"), "lower"):
            bound, base = (base, *bound), vars(type(base))["__call__"]
        else:
            break
    inner = inspect.unwrap(base)
    for what, is_one in (
        ("a generator", inspect.isgeneratorfunction),
        ("a coroutine", inspect.iscoroutinefunction),
        ("an asynchronous generator", inspect.isasyncgenfunction),
    ):
        if is_one(inner):
            raise TypeError(
                f"{_find_name(function, base)} returns {what}: nothing runs until it is read; "
                "measure a function that returns arrays"
            )
    wrapped = getattr(base, "__wrapped__", None)
    # The function inside pmap is a program for one device, and no other way to run the same.
    has_plain = hasattr(base, "lower") and callable(wrapped) and not _is_per_device(base)
    return Given(
        name=name or _find_name(function, base),
        function=function,
        base=base,
        bound=bound,
        keywords=keywords,
        plain=partial(wrapped, *bound, **keywords) if has_plain and wrapped is not None else None,
    )


def _find_cached(base: Any) -> tuple[Any, ...] | None:
    """Arguments that `nnx.cached_partial` has bound, as it hands them on; None of other callables."""
    if not isinstance(base, FunctionType) or not base.__globals__.get("__name__", "").startswith("flax.nnx"):
        return None
    cells = dict(zip(base.__code__.co_freevars, base.__closure__ or (), strict=True))
    return tuple(cells["cached_args"].cell_contents) if "cached_args" in cells and "f" in cells else None


def _is_per_device(base: Any) -> bool:
    return "pmap" in f"{type(base).__qualname__} {getattr(base.lower, '__qualname__', '')}".lower()


def _find_name(function: Any, base: Any) -> str:
    for item in (function, base):
        if isinstance(name := getattr(item, "__name__", None), str) and name != "__call__":
            return name
    return "compiled" if is_program(base) else type(function).__name__
