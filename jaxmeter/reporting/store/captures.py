"""Profiler captures among the files of a run: the largest ones. A push leaves them out unless they are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jaxmeter.document import numbers
from jaxmeter.harness.record.files import locate_capture
from jaxmeter.harness.record.wording import counted

OPTION = "--with-captures"


@dataclass(frozen=True)
class CaptureCount:
    """How many captures some files belong to, and the size of these files."""

    count: int = 0
    size_bytes: int = 0

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return self.count > 0

    def __str__(self) -> str:
        """Return `2 captures (3.10 MiB)`."""
        return f"{counted(self.count, 'capture')} ({numbers.memory(self.size_bytes)})"


NO_CAPTURES = CaptureCount()


def is_capture(path: str) -> bool:
    """Return whether a file belongs to a capture, by its path in the run."""
    return locate_capture(path) is not None


def count_captures(files: Mapping[str, int]) -> CaptureCount:
    """Return the captures among the files of a run, which are given as sizes by path."""
    folders = {path: folder for path in files if (folder := locate_capture(path)) is not None}
    return CaptureCount(len(set(folders.values())), sum(files[path] for path in folders))


def describe_left_out(captures: CaptureCount) -> str:
    """Return what a push left out, and how to send it."""
    return f"{captures} left out; {OPTION} sends them"
