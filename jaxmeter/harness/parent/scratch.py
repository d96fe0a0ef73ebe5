"""The private folder of a run that goes on: messages, inputs and the compilation cache, which processes load as code.

It never lies inside a run: a run may come from somebody else, with files that wait there to be loaded.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

PREFIX = ".jaxmeter-scratch-"
"""`results/*` in a shell is without such a folder, and a container sees it, since it sees the results."""


@dataclass(frozen=True)
class Scratch:
    """What the processes of one run keep for each other."""

    path: Path

    def cache(self, cores: int | None) -> Path:
        """Return the run's private compilation cache of processes on so many cores; None for all.

        XLA splits a CPU program by the number of cores, which the key of JAX's cache lacks. Compiled on two cores and
        loaded on one, squared differences take 1.6 ms under jax 0.4.33; compiled on one, 2.0 ms.
        """
        return self.path / "cache" / ("all" if cores is None else str(cores))

    def inputs(self, case: str) -> Path:
        """Where the processes of a case, by its id, keep its inputs."""
        return self.path / "inputs" / case


def find_parent(run: Path) -> Path:
    """Return the folder around a run, which holds its scratch folder meanwhile: it has the room for it."""
    return Path(os.path.normpath(run / os.pardir))


@contextmanager
def make_scratch(parent: Path) -> Iterator[Path]:
    """A new folder that only this user reads (mode 0700), removed at the end.

    Folders that killed runs have left in `parent` are removed first.
    """
    _remove_abandoned(parent)
    path, lock = _make_locked(parent)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


def _make_locked(parent: Path) -> tuple[Path, int]:
    """A new folder and the open file that holds its lock, by which others know that it is in use."""
    while True:
        # mkdtemp makes its path absolute since Python 3.12: messages show it, and a socket's has 107 bytes at most.
        path = parent / Path(tempfile.mkdtemp(dir=parent, prefix=PREFIX)).name
        with suppress(FileNotFoundError):  # another process has taken it for abandoned, before it was locked
            lock = os.open(path, os.O_RDONLY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if path.exists():
                return path, lock
            os.close(lock)


def _remove_abandoned(parent: Path) -> None:
    """Removes the scratch folders of this user that no process holds."""
    for path in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):  # another user's, a link, in use, or just removed
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(lock).st_uid == os.geteuid():
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(lock)
