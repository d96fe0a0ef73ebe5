"""One way to compute a workload: by JAX, or by a peer."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.declare.levels import call_with
from harness.record import Param

MODES = ("eager", "jit", "aot")
"""How a JAX implementation is executed, unless it says otherwise."""

STREAM_MODES = ("eager", "jit")
"""An ahead-of-time program takes one type of arguments, and a stream has several."""

MIXED = "mixed"
"""Python code that calls parts which it has jitted itself."""

Compiles = int | Callable[..., int]


@dataclass(frozen=True)
class Skip:
    """A declared reason not to run something, e.g. `Skip("needs 2 devices, found 1")`."""

    reason: str


@dataclass(frozen=True)
class Peer:
    """The same computation in another library; it gets the inputs as NumPy arrays.

    Args:
      function: Called with the workload's inputs and the params that it asks for.
      limit: Params by name (and `backend`) -> `Skip` where the peer cannot or should not run, else None.
      convert: (inputs as NumPy arrays) -> the function's arguments, in the library's own types; never timed. It copies
        what the function changes in place.
    """

    function: Callable[..., Any]
    limit: Callable[..., Skip | None] | None = None
    convert: Callable[..., tuple[Any, ...]] | None = None


@dataclass(frozen=True)
class Implementation:
    """One way to compute a workload; `modes` is how it may be executed (`native` for a peer).

    Args:
      compiles: How many programs it may compile at most, in every mode but aot.
      donate: Names of arguments whose memory a jitted call may take.
      raises: The error that calling it must raise.
      convert: Of a peer: makes its arguments.
    """

    name: str
    function: Callable[..., Any]
    modes: tuple[str, ...]
    limit: Callable[..., Skip | None] | None = None
    compiles: Compiles | None = None
    donate: tuple[str, ...] = ()
    raises: type[Exception] | None = None
    convert: Callable[..., tuple[Any, ...]] | None = None

    @property
    def description(self) -> str:
        """The docstring's first line."""
        return first_line(self.function)

    def skip(self, params: Mapping[str, Param], backend: str) -> Skip | None:
        """The declared reason not to run with these params on this backend."""
        return None if self.limit is None else call_with(self.limit, {**params, "backend": backend})


def first_line(documented: Any) -> str:
    """First line of an object's docstring, or the empty text; a built-in's is its signature, so its name instead."""
    line = (inspect.getdoc(documented) or "").partition("\n")[0]
    name = getattr(documented, "__name__", "")
    return f"{type(documented).__module__}.{name}" if name and line.startswith(f"{name}(") else line
