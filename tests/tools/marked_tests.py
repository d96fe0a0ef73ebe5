"""Tests of a kind, as pytest marks them: which arguments a session of them gives to pytest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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

BREAK_FIRST = (
    "tests/harness/programs",  # jaxprs: dependence, traps, dead work, callbacks; export and replay
    "tests/harness/traces",  # captures
    "tests/harness/probes",  # stages and events of monitoring, conditioning, evaluation, formats
    "tests/harness/notebook/test_measure.py",
    "tests/reporting/test_reproduce.py",  # a script of today's JAX, for users of the next one
    "tests/reporting/view",
    "tests/reporting/render",  # pandas, jinja
)
"""What a new release breaks first: tests of code that reads JAX's internals or makes pages. 4 minutes on 2 cores."""


def select_tests(marks: Sequence[str], arguments: Sequence[str], checkout: Path) -> list[str]:
    """Return pytest's arguments for the tests with one of some marks.

    Args:
      marks: Keys of FOLDERS.
      arguments: The user's.
    """
    folders = dict.fromkeys(folder for mark in marks for folder in FOLDERS[mark])
    return ["-m", " or ".join(marks), *choose_paths(folders, arguments, checkout)]


def choose_paths(paths: Iterable[str], arguments: Sequence[str], checkout: Path) -> list[str]:
    """Return the user's arguments for pytest, with some paths unless the arguments name files.

    Only these paths are collected, since collecting all tests takes half a minute.
    """
    names_files = any((checkout / word.split("::")[0]).exists() for word in arguments)
    return [*arguments, *(() if names_files else paths)]
