"""Old runs of a folder of this machine: which may be removed, and which stay and why. Nothing here touches a store."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from jaxmeter.harness.record import RecordError, RunFolder, read_run

from .push import list_local
from .stores import MARK, Store, open_store, persist


@dataclass(frozen=True)
class OldRun:
    """A run that is older than what is kept.

    Args:
      size_bytes: Of all its files.
      stays: Why it is not removed; empty where it may be.
    """

    folder: Path
    started: str
    size_bytes: int
    stays: str = ""


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
    if began >= before:
        return None
    stays = "" if store is None or _is_there(store, manifest.run_id, folder) else f"not whole in {store.url}"
    return OldRun(path, manifest.started, sum(list_local(path).values()), stays)


def _is_there(store: Store, name: str, folder: RunFolder) -> bool:
    """Whether a store holds a run with all of its files, and no other under its name."""
    if persist(partial(store.read, name, MARK)) != folder.mark.read_bytes():
        return False
    there = persist(partial(store.list_files, name))
    return all(there.get(path) == size for path, size in list_local(folder.path).items())
