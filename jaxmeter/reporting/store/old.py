"""Old runs of a folder of this machine: which may be removed, and which stay and why. Nothing here touches a store."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from jaxmeter.harness.record import RecordError, RunFolder, read_run

from .captures import NO_CAPTURES, CaptureCount, count_captures, is_capture
from .push import find_lacking, list_local
from .stores import MARK, SKEW, Store, open_store, persist, read_time


@dataclass(frozen=True)
class OldRun:
    """A run that is older than what is kept, or whose age is unknown.

    Args:
      started: When it began, by the clock of its machine.
      made: When it was made, by that clock, the file system's and the store's: the last of those that are not later
        than now.
      size_bytes: Of all its files.
      stays: Why it is not removed; empty where it may be.
      only_here: Its captures that the store lacks: the run is whole there without them.
    """

    folder: Path
    started: str
    made: datetime
    size_bytes: int
    stays: str = ""
    only_here: CaptureCount = NO_CAPTURES


def find_old(out: Path, keep_days: int, now: datetime, pushed_to: str | None = None) -> Iterator[OldRun]:
    """Runs in a folder that are older than some days, the oldest first. What is no whole run is nobody's to remove.

    Args:
      pushed_to: A store: what it does not hold whole stays.
    Raises:
      StoreError, BrokenOffError: The store refuses, or cannot be reached.
    """
    store = None if pushed_to is None else open_store(pushed_to)
    runs = [run for path in sorted(out.iterdir()) if (run := _look(path, keep_days, now, store)) is not None]
    yield from sorted(runs, key=lambda run: run.made)


def remove(run: OldRun) -> None:
    """Removes a run: its commit mark first, so that one which is half gone is no whole run."""
    (run.folder / MARK).unlink()
    shutil.rmtree(run.folder)


def find_time(keep_days: int, now: datetime) -> datetime:
    """Before which runs are old."""
    return now - timedelta(days=keep_days)


def _look(path: Path, keep_days: int, now: datetime, store: Store | None) -> OldRun | None:
    folder = RunFolder(path)
    if path.name.startswith(".") or path.is_symlink() or not folder.mark.is_file():
        return None
    try:
        manifest = read_run(folder).manifest
    except RecordError:
        return None
    written = datetime.fromtimestamp(folder.mark.stat().st_mtime, UTC)
    made = _choose_last(now, read_time(manifest.started), written)
    before = find_time(keep_days, now)
    if store is not None and (made is None or made < before):
        there = persist(partial(store.look_up, manifest.run_id, MARK))
        made = _choose_last(now, made, None if there is None else there.changed)
    if made is not None and made >= before:
        return None
    files = list_local(path)
    lacking = {} if store is None else _find_lacking(store, manifest.run_id, folder, files)
    stays = "" if store is None or all(map(is_capture, lacking)) else f"not whole in {store.url}"
    if made is None:
        stays = f"its times are later than now, {now:%Y-%m-%d}; `touch {folder.mark}` makes it of today"
    return OldRun(path, manifest.started, made or written, sum(files.values()), stays, count_captures(lacking))


def _choose_last(now: datetime, *times: datetime | None) -> datetime | None:
    """The last of some times that is not later than now; None where there is none."""
    return max((time for time in times if time is not None and time <= now + SKEW), default=None)


def _find_lacking(store: Store, name: str, folder: RunFolder, files: dict[str, int]) -> dict[str, int]:
    """The files of a run that a store lacks; all where it holds another run under this name, or an unfinished one."""
    there = persist(partial(store.look_up, name, MARK))
    if there is None or there.size_bytes != files.get(MARK):
        return files
    if persist(partial(store.read, name, MARK)) != folder.mark.read_bytes():
        return files
    return persist(partial(find_lacking, store, name, files))
