"""Pushes a run into a store: its manifest first, its commit mark last; captures only where they are asked for."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from jaxmeter.document import numbers
from jaxmeter.harness.record import RecordError, RunFolder, read_run
from jaxmeter.harness.record.files import locate_capture, read_bytes
from jaxmeter.harness.record.wording import counted

from .stores import (
    MANIFEST,
    MARK,
    BrokenOffError,
    Store,
    StoreError,
    TakenError,
    describe_excess,
    is_run_id,
    open_store,
    persist,
)

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


Sleep = Callable[[float], object]


@dataclass(frozen=True)
class Pushed:
    """A run that is whole in a store.

    Args:
      url: Where it is.
      files, size_bytes: How many files it has there.
      sent: How many of them were sent now.
      left_out: The captures of the run that the store does not have.
      refused: A sentence on each file that is too large to be sent.
    """

    url: str
    files: int
    size_bytes: int
    sent: int
    left_out: CaptureCount = NO_CAPTURES
    refused: tuple[str, ...] = ()


def push(folder: RunFolder, url: str, sleep: Sleep = time.sleep, *, with_captures: bool = False) -> Pushed:
    """Copies a run that has ended; what is there of it already is not sent again.

    Nothing local is removed, and nothing in the store is ever overwritten with other contents of another run.

    Args:
      with_captures: Whether profiler captures are sent, too. Those that are in the store already stay there.
    Raises:
      StoreError: The run has not ended, its id is taken, or the store refuses.
      BrokenOffError: It broke off; the same command goes on.
    """
    try:
        run, mark, manifest = read_run(folder), read_bytes(folder.mark), read_bytes(folder.manifest)
    except RecordError as error:
        raise StoreError(
            f"{folder.path}: only a run that has ended is pushed; finish it with --resume ({error})"
        ) from error
    name = run.manifest.run_id
    if not is_run_id(name):
        raise StoreError(f"{folder.path}: its id '{name}' cannot be a folder's name in a store")
    store = open_store(url)
    local = list_local(folder.path)
    refused = [
        path for path, size in local.items() if (with_captures or not is_capture(path)) and describe_excess(path, size)
    ]
    faults = tuple(
        f"{folder.path / path}: {describe_excess(path, local.pop(path))}; it is not sent" for path in refused
    )
    persist(partial(_claim, store, name, manifest), sleep)
    persist(partial(_require_unfinished, store, name, mark), sleep)
    sent, left_out = persist(partial(_send_missing, store, name, folder.path, local, with_captures), sleep)
    persist(partial(_commit, store, name, mark), sleep)
    there = {path: size for path, size in local.items() if path not in left_out}
    return Pushed(store.name(name), len(there), sum(there.values()), sent, count_captures(left_out), faults)


def reach(url: str, sleep: Sleep = time.sleep) -> None:
    """Asks a store for what it holds, as it will be asked when a run is pushed.

    Raises:
      StoreError, BrokenOffError: As for `push`.
    """
    persist(open_store(url).require_bucket, sleep)


def list_local(folder: Path) -> dict[str, int]:
    """Sizes of a run's files by their path in it: regular ones, and none that begins with a dot."""
    sizes = {}
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if path.is_file() and not path.is_symlink() and not any(part.startswith(".") for part in inside.parts):
            sizes[inside.as_posix()] = path.stat().st_size
    return sizes


def _claim(store: Store, name: str, manifest: bytes) -> None:
    """Takes the id, or finds that this very run has it."""
    if not store.create(manifest, name, MANIFEST) and store.read(name, MANIFEST) != manifest:
        raise TakenError(
            f"{store.name(name)}: another run has this id; nothing was changed there. Give the next run another"
        )


def _require_unfinished(store: Store, name: str, mark: bytes) -> None:
    """Whether nobody has finished the run there, unless it is this very one."""
    there = store.read(name, MARK)
    if there is not None and there != mark:
        raise TakenError(
            f"{store.name(name)}: the store has another finished run of this id; nothing was changed there"
        )


def _send_missing(
    store: Store, name: str, folder: Path, local: Mapping[str, int], with_captures: bool
) -> tuple[int, dict[str, int]]:
    """Sends what the store lacks, and looks whether it is there then; how many files were sent, and what was not."""
    lacking = find_lacking(store, name, {path: size for path, size in local.items() if path not in (MANIFEST, MARK)})
    left_out = {path: size for path, size in lacking.items() if is_capture(path) and not with_captures}
    wanted = {path: size for path, size in lacking.items() if path not in left_out}
    if wanted:
        store.send({folder / path: (name, path) for path in wanted})
        if left := find_lacking(store, name, wanted):
            raise BrokenOffError(f"{store.name(name)}: {len(left)} files are not there as they were sent; try again")
    return len(wanted), left_out


def find_lacking(store: Store, name: str, wanted: Mapping[str, int]) -> dict[str, int]:
    """Those of a run's files that a store does not have in their size."""
    there = store.list_files(name)
    return {path: size for path, size in wanted.items() if there.get(path) != size}


def _commit(store: Store, name: str, mark: bytes) -> None:
    if not store.create(mark, name, MARK):
        _require_unfinished(store, name, mark)
