"""Old runs of a folder of this machine: which may be removed, and which stay and why. Nothing here touches a store."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from jaxmeter.harness.record import RecordError, RunFolder, read_run

from .captures import NO_CAPTURES, Captures, count_captures, is_capture
from .push import find_lacking, list_local
from .stores import MARK, Store, open_store, persist


@dataclass(frozen=True)
class OldRun:
    """A run that is older than what is kept.

    Args:
      size_bytes: Of all its files.
      stays: Why it is not removed; empty where it may be.
      only_here: Its captures that the store lacks: the run is whole there without them.
    """

    folder: Path
    started: str
    size_bytes: int
    stays: str = ""
    only_here: Captures = NO_CAPTURES


def find_old(out: Path, before: datetime, pushed_to: str | None = None) -> Iterator[OldRun]:
    """Runs in a folder that began before a time, the oldest first. What is no whole run is nobody's to remove.

    Args:
      pushed_to: A store: what it does not hold whole stays.
    Raises:
      StoreError, BrokenOffError: The store refuses, or cannot be reached.
    """
    store = None if pushed_to is None else open_store(pushed_to)
    found = [one for path in sorted(out.iterdir()) if (one := _look(path, before, store)) is not None]
    yield from sorted(found, key=lambda one: one.started)


def remove(run: OldRun) -> None:
    """Removes a run: its commit mark first, so that one which is half gone is no whole run."""
    (run.folder / MARK).unlink()
    shutil.rmtree(run.folder)


def find_time(keep_days: int, now: datetime) -> datetime:
    """Before which runs are old."""
    return now - timedelta(days=keep_days)


def _look(path: Path, before: datetime, store: Store | None) -> OldRun | None:
    folder = RunFolder(path)
    if path.name.startswith(".") or path.is_symlink() or not folder.mark.is_file():
        return None
    try:
        manifest = read_run(folder).manifest
        began = datetime.fromisoformat(manifest.started)
    except (RecordError, ValueError):
        return None
    began = began if began.tzinfo is not None else began.replace(tzinfo=UTC)  # a foreign record may lack its zone
    if began >= before:
        return None
    files = list_local(path)
    lacking = {} if store is None else _find_lacking(store, manifest.run_id, folder, files)
    stays = "" if store is None or all(map(is_capture, lacking)) else f"not whole in {store.url}"
    return OldRun(path, manifest.started, sum(files.values()), stays, count_captures(lacking))


def _find_lacking(store: Store, name: str, folder: RunFolder, files: dict[str, int]) -> dict[str, int]:
    """The files of a run that a store lacks; all where it holds another run under this name, or an unfinished one."""
    if persist(partial(store.read, name, MARK)) != folder.mark.read_bytes():
        return files
    return persist(partial(find_lacking, store, name, files))
