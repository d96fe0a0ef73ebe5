"""Does a program call Python while it runs, and does a call of Python code print? Primitives, HLO text, streams."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TextIO

from jaxmeter.harness.machine import jax_internals as internals
from jaxmeter.harness.programs.program import NoTextError, read_hlo, walk_equations

CALLBACKS = ("callback", "outside_call", "debug_print")
"""Parts of the names of primitives that call Python."""

_TARGET = re.compile(rf'custom_call_target="[^"]*{internals.PYTHON_TARGET.name}[^"]*"')
"""Such as xla_ffi_python_cpu_callback, xla_ffi_partitioned_python_gpu_callback and xla_buffer_python_cpu_callback."""


def is_callback(primitive: str) -> bool:
    """Return whether a primitive of this name calls Python."""
    return any(part in primitive for part in CALLBACKS)


def has_callbacks(jaxpr: Any) -> bool:
    """Return whether a program calls Python, at any level."""
    return any(is_callback(equation.primitive.name) for equation in walk_equations(jaxpr))


def is_calling_python(compiled: Any) -> bool:
    """Return whether a compiled program calls Python, by its HLO text; without a text that is not known: False."""
    try:
        return bool(_TARGET.search(read_hlo(compiled)))
    except NoTextError:
        return False


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
