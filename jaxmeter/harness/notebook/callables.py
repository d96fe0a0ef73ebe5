"""What a user passes to be measured: which transformation it has, and the function without it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from types import FunctionType, MethodType
from typing import Any

from jaxmeter.harness.declare.implementation import MODES
from jaxmeter.harness.record import AS_GIVEN

CALLABLE_MODES = (AS_GIVEN, *MODES)
"""How a callable of a user can be executed."""

SHOWN = "as given"
"""How a person reads and writes the mode `as_given`."""


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
      args: Positional arguments of its own; None where it takes those of the measurement.
    """

    name: str
    function: Callable[..., Any]
    base: Any
    bound: tuple[Any, ...]
    keywords: dict[str, Any]
    plain: Callable[..., Any] | None
    args: tuple[Any, ...] | None = None

    @property
    def is_transformed(self) -> bool:
        """Whether the callable decides itself how it is compiled: `jax.jit`, `nnx.jit`, `pmap`, a compiled program."""
        return hasattr(self.base, "lower") or is_program(self.base)

    @property
    def has_stages(self) -> bool:
        """Whether it can be traced or lowered by itself."""
        return hasattr(self.base, "lower")

    @property
    def modes(self) -> tuple[str, ...]:
        """All modes that it can be measured in."""
        if not self.is_transformed:
            return MODES
        return (AS_GIVEN,) if self.plain is None else CALLABLE_MODES

    def choose_modes(self, asked: tuple[str, ...] | None) -> tuple[str, ...]:
        """Return the modes to measure it in: exactly those that are asked for and that it has, in their order.

        A function without a transformation is called as given where it is called eagerly.

        Raises:
          ValueError: It has none of the modes that are asked for.
        """
        if asked is None:
            return tuple(mode for mode in self.modes if not self.is_transformed or mode != "aot")
        own = asked if self.is_transformed else tuple("eager" if mode == AS_GIVEN else mode for mode in asked)
        chosen = tuple(dict.fromkeys(mode for mode in own if mode in self.modes))
        if not chosen:
            raise ValueError(
                f"modes= names {show_modes(asked)}, and '{self.name}' has only the mode {show_modes(self.modes)}: "
                "no function without its transformation can be called; add 'as given' to modes="
            )
        return chosen

    def describe_modes(self, asked: tuple[str, ...] | None) -> str:
        """Say which of the modes that are asked for it does not have, or how it is called instead; empty if none."""
        if asked is None:
            return ""
        if not self.is_transformed:
            return f"{self.name} has no transformation: as given, it is eager" if AS_GIVEN in asked else ""
        missing = tuple(mode for mode in asked if mode not in self.modes)
        if not missing:
            return ""
        return f"{self.name} is not measured in {show_modes(missing)}: it has no function without its transformation"


def show_modes(modes: Iterable[str]) -> str:
    """Return modes as a person reads them: `as given, jit`."""
    return ", ".join(SHOWN if mode == AS_GIVEN else mode for mode in modes)


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
