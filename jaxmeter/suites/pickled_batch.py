"""Reads a pickled dict of numbers, bytes and arrays of bytes, and runs no code of it.

A pickle names the functions that build its values, and the usual reader calls whatever it names. Here only the three
names that an array needs are known, and what stands for them builds nothing but arrays of bytes.
"""

from __future__ import annotations

import io
import pickle
from typing import ClassVar

import numpy as np


class PickleError(Exception):
    """A pickle that cannot be read; the message goes on after the file's name."""


def read_pickle(content: bytes) -> object:
    """The value of a pickle of Python 2 or 3: texts of Python 2 are bytes.

    Raises:
      PickleError: It is damaged, or names anything but arrays.
    """
    try:
        return _plain(_Reader(io.BytesIO(content), encoding="bytes").load())
    except PickleError:
        raise
    except MemoryError:
        raise PickleError("asks for more memory than there is") from None
    except Exception as error:  # damaged bytes may fail in any way
        raise PickleError(f"is no whole pickle ({type(error).__name__}: {error})") from error


class _Reader(pickle._Unpickler):
    """In Python, since the reader in C makes room for as many values as a damaged file says that it has."""

    # The one step that makes room for bytes before it has read them; nothing that Python 2 writes.
    dispatch: ClassVar = {step: do for step, do in pickle._Unpickler.dispatch.items() if step != pickle.BYTEARRAY8[0]}

    def find_class(self, module: str, name: str) -> object:
        """What stands for a name; what has no place in a plain array is refused."""
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
"""What a pickled array names as its class."""


class _Dtype:
    """What a pickled dtype says of itself."""

    def __init__(self, code: object, *_: object) -> None:
        self.code = code

    def __setstate__(self, state: object) -> None:
        """Byte order and the like, of which bytes have none."""


class _Array:
    """What a pickled array says of itself."""

    def __init__(self, *_: object) -> None:
        self.array: np.ndarray | None = None

    def __setstate__(self, state: object) -> None:
        """Version, shape, dtype, whether by columns, and the bytes: ndarray.__reduce__ in NumPy's documentation."""
        _, shape, dtype, by_columns, content = state  # type: ignore[misc]  damaged ones raise, and that is caught
        if not isinstance(dtype, _Dtype) or dtype.code not in {"u1", b"u1"}:
            raise PickleError("holds an array that is not of unsigned bytes")
        self.array = np.frombuffer(content, np.uint8).reshape(shape, order="F" if by_columns else "C")


def _encode(text: str, encoding: str) -> bytes:
    """Bytes, as Python 3 writes them for Python 2."""
    if encoding != "latin1":
        raise PickleError(f"holds bytes in the encoding {encoding!r}")
    return text.encode("latin1")


def _plain(value: object) -> object:
    """A dict with its arrays in place of what has read them."""
    if not isinstance(value, dict):
        return value
    return {key: entry.array if isinstance(entry, _Array) else entry for key, entry in value.items()}
