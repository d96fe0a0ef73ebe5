"""Does a program call Python while it runs, and does a call of Python code print? Primitives, calls, streams."""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, TextIO

import jax

from jaxmeter.harness.machine import jax_internals as internals
from jaxmeter.harness.machine.own_fault import UnknownError

CALLBACKS = ("callback", "outside_call", "debug_print")
"""Parts of the names of primitives that call Python."""

RUNNERS = (internals.PURE_CALLBACK, internals.IO_CALLBACK, internals.DEBUG_CALLBACK, internals.DEBUG_PRINT)
"""A compiled program looks each of them up when it calls Python."""


def is_callback(primitive: str) -> bool:
    """Return whether a primitive of this name calls Python."""
    return any(part in primitive for part in CALLBACKS)


@dataclass
class Called:
    """Calls of Python by programs.

    Args:
      callbacks: The callback of each call, as the equation has it. `jax.debug.print` has one that no equation has.
      fault: Why they are not counted; None if they are.
    """

    callbacks: list[Any] = field(default_factory=list)
    fault: UnknownError | None = None


@contextmanager
def watch_callbacks() -> Iterator[Called]:
    """Keep which callbacks programs call, also programs that were compiled before. The block's effects end with it."""
    called = Called()

    def keep(run: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(run)
        def run_and_keep(*args: Any, **params: Any) -> Any:
            called.callbacks.append(params.get("callback"))
            return run(*args, **params)

        return run_and_keep

    try:
        runners = [(row.load(), *_find_holder(row)) for row in RUNNERS]
    except UnknownError as error:
        called.fault, runners = error, []
    for run, holder, name in runners:
        setattr(holder, name, keep(run))
    try:
        yield called
        jax.effects_barrier()
    finally:
        for run, holder, name in runners:
            setattr(holder, name, run)


def _find_holder(row: internals.Internal) -> tuple[Any, str]:
    """The object that has the internal as an attribute, and the attribute's name."""
    holder, _, name = row.name.rpartition(".")
    return pkgutil.resolve_name(holder), name


@dataclass
class Written:
    """Whether something was written to stdout or stderr."""

    is_any: bool = False


class _Watched:
    """A stream that notes writing, and is the stream in all else."""

    def __init__(self, stream: TextIO, written: Written) -> None:
        self._stream, self._written = stream, written

    def write(self, text: str) -> int:
        """Write the text."""
        self._written.is_any = True
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def watch_writing() -> Iterator[Written]:
    """Note whether Python code, also that of callbacks, writes to stdout or stderr."""
    written, streams = Written(), (sys.stdout, sys.stderr)
    watched: Any = [None if stream is None else _Watched(stream, written) for stream in streams]
    sys.stdout, sys.stderr = watched
    try:
        yield written
    finally:
        # What the code has put there itself stays.
        sys.stdout = streams[0] if sys.stdout is watched[0] else sys.stdout
        sys.stderr = streams[1] if sys.stderr is watched[1] else sys.stderr
