"""Tests of a kind, as pytest marks them: which arguments a session of them gives to pytest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

SIDE_BY_SIDE = (
    *("--numprocesses", "logical", "--maxprocesses", "4", "--dist", "loadfile"),
    *("--max-worker-restart", "0"),  # with another worker in place of a crashed one, xdist 3.8 may wait for ever
)
"""Tests on up to four cores; those of a file share what they made, so they stay together."""

ANY_PROCESS = (*SIDE_BY_SIDE, "--dist", "load")
"""The same for tests that share nothing."""

FOLDERS: Mapping[str, Sequence[str]] = {
    "container": ("tests/container",),
    "page": ("tests/reporting",),
    "browser": ("tests/reporting",),
    "suites": ("tests/end_to_end", "tests/suites"),  # the longest tests first
    "releases": ("tests/end_to_end",),
    "cloud": ("tests/cloud",),
    "torch": ("tests/suites",),
}
"""Where all tests with a mark are."""


def select_tests(marks: Sequence[str], arguments: Sequence[str], checkout: Path) -> list[str]:
    """Return pytest's arguments for the tests with one of some marks.

    Only their folders are collected, since collecting all tests takes half a minute, unless the arguments name files.

    Args:
      marks: Keys of FOLDERS.
      arguments: The user's.
    """
    names_files = any((checkout / one.split("::")[0]).exists() for one in arguments)
    folders = dict.fromkeys(folder for mark in marks for folder in FOLDERS[mark])
    return ["-m", " or ".join(marks), *arguments, *(() if names_files else folders)]
