"""Arguments from a file: `python -m harness run @FILE` takes one from each line, as a night's steps write them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from harness.parent.prepare_run import UsageError


def expand(words: Sequence[str]) -> list[str]:
    """The words of a command line, with the lines of the file that stands right after the command.

    Raises:
      UsageError: The file cannot be read.
    """
    if len(words) < 2 or not words[1].startswith("@"):
        return list(words)
    path = Path(words[1][1:])
    try:
        lines = os.fsdecode(path.read_bytes()).removesuffix("\n").split("\n")
    except OSError as error:
        raise UsageError(f"{words[1]}: the file of arguments cannot be read: {error.strerror}") from error
    return [words[0], *lines, *words[2:]]
