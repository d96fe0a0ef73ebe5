"""A failure of jaxmeter's own analysis: what it leaves unknown, in a note that is counted. No jax."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jaxmeter.harness.record.remarks import OWN_FAULT

LONGEST_WORDS = 200

_HARNESS = str(Path(__file__).parents[1])

_MISTAKES = (AssertionError, AttributeError, IndexError, KeyError, NameError)
"""What Python raises where a program expects something that is not there. If a line of jaxmeter raised it, it is no
error of the user's code, whose own lines would be the last ones of the traceback."""


class UnknownError(Exception):
    """Something about a program cannot be found out.

    Args:
      words: Why.
      unknown: What is unknown therefore, as the object of a sentence.
    """

    def __init__(self, words: str, unknown: str) -> None:
        super().__init__(words)
        self.unknown = unknown


class ReleaseLacksError(UnknownError):
    """The installed release of jax is known to lack what would show it."""


class OwnFaultError(UnknownError):
    """Jaxmeter's analysis failed."""


@contextmanager
def analysing(unknown: str) -> Iterator[None]:
    """Make whatever the block raises jaxmeter's own fault: it calls no code of the user's.

    Args:
      unknown: What is unknown then, as the object of a sentence.
    Raises:
      OwnFaultError: The block raised something.
      ReleaseLacksError: The block raised it.
    """
    try:
        yield
    except UnknownError:
        raise
    except Exception as error:
        raise OwnFaultError(_describe(error), unknown) from error


def is_own_fault(error: BaseException) -> bool:
    """Return whether an error is jaxmeter's own: a failed analysis, or a mistake in a line of jaxmeter."""
    if isinstance(error, OwnFaultError):
        return True
    frames = traceback.extract_tb(error.__traceback__)
    return isinstance(error, _MISTAKES) and bool(frames) and frames[-1].filename.startswith(_HARNESS)


def describe_own_fault(error: BaseException, unknown: str = "") -> str:
    """Return a note: what is unknown, and the error; a record's readers find it by its beginning.

    Args:
      unknown: What is unknown, as the object of a sentence, where the error itself does not say it.
    """
    if isinstance(error, UnknownError):
        return f"{OWN_FAULT}: cannot determine {error.unknown or unknown}: {error}"
    return f"{OWN_FAULT}: cannot determine {unknown}: {_describe(error)}"


def _describe(error: BaseException) -> str:
    """`KeyError: 'num_consts' (harness/programs/dependence.py:36)`: the last line of jaxmeter's."""
    words = " ".join(str(error).split())[:LONGEST_WORDS]
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(_HARNESS)]
    where = f" (harness{own[-1].filename.removeprefix(_HARNESS)}:{own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {words}{where}"
