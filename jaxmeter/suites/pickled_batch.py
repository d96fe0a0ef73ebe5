"""Reader of a pickled dict of numbers, bytes and uint8 arrays, which runs no code of the pickle.

A pickle names the functions that build its values, and the usual reader calls every function that the pickle names.
This reader knows only the names that an array needs. Their replacements build only arrays of bytes.
"""

from __future__ import annotations

import io
import pickle
from typing import ClassVar

import numpy as np


class PickleError(Exception):
    """A pickle that cannot be read; the caller puts the name of the file before the message."""


def read_pickle(content: bytes) -> object:
    """Return the value of a pickle of Python 2 or 3; strings of Python 2 become bytes.

    Raises:
      PickleError: The pickle is damaged, or names anything other than arrays.
    """
    try:
        return _plain(_Reader(io.BytesIO(content), encoding="bytes").load())
    except PickleError:
        raise
    except MemoryError:
        raise PickleError("asks for more memory than there is") from None
    except Exception as error:  # damaged bytes can raise any exception
        raise PickleError(f"is no whole pickle ({type(error).__name__}: {error})") from error


class _Reader(pickle._Unpickler):
    """Unpickler in Python, because the C reader allocates as many values as a damaged file claims to have."""

    # BYTEARRAY8 is the only opcode that allocates bytes before it reads them. Python 2 never writes it.
    dispatch: ClassVar = {step: do for step, do in pickle._Unpickler.dispatch.items() if step != pickle.BYTEARRAY8[0]}

    def find_class(self, module: str, name: str) -> object:
        """Return the replacement for a name; reject every name that a plain array does not need."""
        known = {
            ("numpy.core.multiarray", "_reconstruct"): _Array,
            ("numpy._core.multiarray", "_reconstruct"): _Array,
            ("numpy", "ndarray"): _NAMED,
            ("numpy", "dtype"): _Dtype,
            ("_codecs", "encode"): _encode,
        }
        if (module, name) not in known:
            raise PickleError(f"asks to run {module}.{name}, which no data set needs, and was not read further")
        return known[module, name]


_NAMED = object()
"""Stands for the class that a pickled array names."""


class _Dtype:
    """A pickled dtype: its code."""

    def __init__(self, code: object, *_: object) -> None:
        self.code = code

    def __setstate__(self, state: object) -> None:
        """Ignore byte order and similar fields, which bytes do not have."""


class _Array:
    """A pickled array: its content, after `__setstate__`."""

    def __init__(self, *_: object) -> None:
        self.array: np.ndarray | None = None

    def __setstate__(self, state: object) -> None:
        """Read version, shape, dtype, whether the order is by columns, and the bytes.

        Source: ndarray.__reduce__ in NumPy's documentation.
        """
        _, shape, dtype, by_columns, content = state  # type: ignore[misc]  damaged ones raise; `read_pickle` catches it
        if not isinstance(dtype, _Dtype) or dtype.code not in {"u1", b"u1"}:
            raise PickleError("holds an array that is not of unsigned bytes")
        self.array = np.frombuffer(content, np.uint8).reshape(shape, order="F" if by_columns else "C")


def _encode(text: str, encoding: str) -> bytes:
    """Return bytes that Python 3 wrote in the form for Python 2."""
    if encoding != "latin1":
        raise PickleError(f"holds bytes in the encoding {encoding!r}")
    return text.encode("latin1")


def _plain(value: object) -> object:
    """Return a dict with each `_Array` replaced by its array."""
    if not isinstance(value, dict):
        return value
    return {key: entry.array if isinstance(entry, _Array) else entry for key, entry in value.items()}
