"""One way to compute a workload: by JAX, or by a peer."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from jaxmeter.harness.declare.declaration import Function, ImplementationOptions, Peer, Skip
from jaxmeter.harness.declare.fingerprint import fingerprint
from jaxmeter.harness.declare.levels import DeclarationError, call_with
from jaxmeter.harness.record.cases import NATIVE, Param

MODES = ("eager", "jit", "aot")
"""How a JAX implementation is executed, unless it says otherwise."""

STREAM_MODES = ("eager", "jit")
"""An ahead-of-time program takes one type of arguments, and a stream has several."""

ONE_COMPILED = ("jit", "aot")
"""Modes with one program of their own; only a stream's `jit` has several."""

MIXED = "mixed"
"""Python code that JAX does not trace as a whole: it calls what it has jitted, or single operations."""


@dataclass(frozen=True, kw_only=True)
class Implementation(ImplementationOptions, Peer):
    """One way to compute a workload: all that is declared of a JAX implementation or of a peer, without gaps."""

    name: str
    modes: tuple[str, ...]

    @property
    def description(self) -> str:
        """The docstring's first line."""
        return read_first_line(self.function)

    def hash_source(self) -> str:
        """Hash of its code and of what it is compiled with."""
        options = (f"{name}={value!r}" for name, value in sorted(self.compiler_options.items()))
        return fingerprint(self.function, constants=tuple(options))

    @property
    def variants(self) -> tuple[str, ...]:
        """Names of its variants, `implementation:mode`."""
        return tuple(f"{self.name}:{mode}" for mode in self.modes)

    def find_skip(self, params: Mapping[str, Param], backend: str) -> Skip | None:
        """The declared reason not to run with these params on this backend."""
        return None if self.limit is None else call_with(self.limit, {**params, "backend": backend})


def implement(function: Function, options: ImplementationOptions, modes: tuple[str, ...]) -> Implementation:
    """A function as an implementation; it has its own name, and these modes, unless the options say otherwise."""
    name = options.name or find_own_name(function, "implementation")
    named = {"name": name, "modes": options.modes or modes}
    return Implementation(function, **{**vars(options), **named})


def find_own_name(function: Function, what: str) -> str:
    """Return a function's own name.

    Args:
      what: How a suite calls the declaration, for errors.
    Raises:
      DeclarationError: It has none, as a partial or an object that can be called.
    """
    name = getattr(function, "__name__", None)
    if name is None:
        kind = f"{type(function).__module__}.{type(function).__qualname__}"
        raise DeclarationError(f"{what}: a {kind} has no name of its own; give it one: {what}(name='…', …)")
    return str(name)


def implement_peer(name: str, peer: Peer | Function) -> Implementation:
    """A function of another library as an implementation."""
    peer = peer if isinstance(peer, Peer) else Peer(peer)
    return Implementation(**vars(peer), name=name, modes=(NATIVE,))


def _find_documented(function: Any) -> Any:
    """Return the function whose docstring describes it: that of a partial is `functools`' own."""
    while isinstance(function, partial):
        function = function.func
    return function


def list_variants(implementations: Iterable[Implementation]) -> tuple[str, ...]:
    """Names of all variants, `implementation:mode`."""
    return tuple(name for item in implementations for name in item.variants)


def read_first_line(documented: Any) -> str:
    """First line of an object's docstring, or the empty text; a built-in's is its signature, so its name instead."""
    documented = _find_documented(documented)
    line = (inspect.getdoc(documented) or "").partition("\n")[0]
    name = getattr(documented, "__name__", "")
    return f"{type(documented).__module__}.{name}" if name and line.startswith(f"{name}(") else line
