"""Errors that are no result of a variant: a full disk, and failures of jaxmeter's own analysis. No jax."""

from __future__ import annotations

import errno
import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jaxmeter.harness.record.outcomes import OWN_FAULT

FULL = (errno.ENOSPC, errno.EDQUOT)

EXIT_CODE = 74
"""Exit code of a process that could not write: EX_IOERR of sysexits.h ("an error occurred while doing I/O on some
file")."""


def is_disk_full(error: BaseException | None) -> bool:
    """Return whether an error or one of its causes reports a full disk, by its number or by the message from C++."""
    words = tuple(map(os.strerror, FULL))
    while error is not None:
        if isinstance(error, OSError) and error.errno in FULL:
            return True
        if isinstance(error, RuntimeError) and any(message in str(error) for message in words):
            return True
        error = error.__cause__ or error.__context__
    return False


LONGEST_WORDS = 200

_HARNESS = str(Path(__file__).parents[1])

_MISTAKES = (AssertionError, AttributeError, IndexError, KeyError, NameError)
"""Errors that Python raises if a name, key, attribute or index is missing, or an assertion fails. The last line of the
traceback then belongs to the code with the mistake: to jaxmeter, or to the user."""


_FILTERED = "JAX has removed its internal frames"
"""Part of a note that JAX adds to an error. The last frame of such an error is not the origin of the error."""


class UnknownError(Exception):
    """A property of a program that jaxmeter cannot determine.

    Args:
      words: Reason.
      unknown: What is unknown for this reason, as the object of a sentence.
    """

    def __init__(self, words: str, unknown: str) -> None:
        super().__init__(words, unknown)  # both, so that another process can read it
        self.unknown = unknown

    def __str__(self) -> str:
        return str(self.args[0])


class ReleaseLacksError(UnknownError):
    """A known limit: the installed release of jax lacks the internal that shows the property."""


class OwnFaultError(UnknownError):
    """A failure of jaxmeter's own analysis."""


@contextmanager
def analysing(unknown: str) -> Iterator[None]:
    """Convert each error of a block that calls no user code into OwnFaultError.

    Args:
      unknown: What is unknown if the block fails, as the object of a sentence.
    Raises:
      OwnFaultError: The block raised an error.
      ReleaseLacksError: The block itself raised ReleaseLacksError.
    """
    try:
        yield
    except Exception as error:  # noqa: BLE001  of any kind: the block calls no user code
        own = blame_jaxmeter(error, unknown)
        raise own from own.__cause__


def blame_jaxmeter(error: Exception, unknown: str) -> UnknownError:
    """Return an error of an analysis as jaxmeter's own fault; an UnknownError is returned unchanged."""
    if isinstance(error, UnknownError):
        return error
    own = OwnFaultError(_describe(error), unknown)
    own.__cause__ = error
    return own


def is_own_fault(error: BaseException) -> bool:
    """Return whether an error is jaxmeter's own: a failed analysis, or a mistake in a line of jaxmeter."""
    if isinstance(error, OwnFaultError):
        return True
    if not isinstance(error, _MISTAKES) or any(_FILTERED in note for note in getattr(error, "__notes__", ())):
        return False
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and frames[-1].filename.startswith(_HARNESS)


def describe_own_fault(error: BaseException, unknown: str = "") -> str:
    """Return a note with what is unknown, and the error. Readers of a record recognise the note by its beginning.

    Args:
      unknown: What is unknown, as the object of a sentence; if empty, the error states what is unknown.
    """
    if not isinstance(error, UnknownError):
        return f"{OWN_FAULT}: cannot determine {unknown}: {_describe(error)}"
    begin = "" if isinstance(error, ReleaseLacksError) else f"{OWN_FAULT}: "
    return f"{begin}cannot determine {unknown or error.unknown}: {error}"


def _describe(error: BaseException) -> str:
    """Return `KeyError: 'num_consts' (harness/programs/equations.py:36)`, with jaxmeter's last line."""
    words = " ".join(str(error).split())[:LONGEST_WORDS]
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename.startswith(_HARNESS) and frame.filename != __file__]
    where = f" (harness{own[-1].filename.removeprefix(_HARNESS)}:{own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {words}{where}"
