"""The words of a command line before they are read: those of a file, and those that no record can hold."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path


class ArgumentsError(Exception):
    """A command line cannot be used; the message says why."""


def expand(words: Sequence[str]) -> list[str]:
    """Return the words of a command line, with the lines of the file that a `@FILE` right after the verb names.

    The steps of a nightly run write such files: `jaxmeter run @FILE`.

    Raises:
      ArgumentsError: The file cannot be read.
    """
    if len(words) < 2 or not words[1].startswith("@"):
        return list(words)
    path = Path(words[1][1:])
    try:
        lines = os.fsdecode(path.read_bytes()).removesuffix("\n").split("\n")
    except OSError as error:
        raise ArgumentsError(f"{words[1]}: the file of arguments cannot be read: {error.strerror}") from error
    return [words[0], *lines, *words[2:]]


def refuse_other_bytes(words: Sequence[str]) -> None:
    """Check that every word is text: a shell passes any bytes on, and a record holds UTF-8.

    Raises:
      ArgumentsError: A word is not.
    """
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError as error:
            shown = word.encode("ascii", "replace").decode()
            raise ArgumentsError(f"'{shown}' is not valid UTF-8; choose a name that is") from error
