"""What a machine keeps and may remove: old runs of a folder, and environments that nothing used for some time."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from jaxmeter.harness.record import RecordError, RunFolder, read_run

from .push import NO_CAPTURES, CaptureCount, count_captures, find_lacking, is_capture, list_local
from .stores import MARK, SKEW, Store, open_store, persist, read_time

COMPLETE = "complete"
"""A file in a whole environment, as the launcher calls it; its time is that of the last use."""

NAMED = "named.txt"
"""A file with the packages that the user named, and what these need: one requirement a line."""

OWN = ("jax==", "jaxlib==")
"""Requirements that tell environments apart."""


@dataclass(frozen=True)
class KeptEnvironment:
    """An environment.

    Args:
      packages: Versions of jax and jaxlib; empty where it holds none.
      used: When something last used it.
      size_bytes: Of all its files.
    """

    folder: Path
    packages: str
    used: datetime
    size_bytes: int


def find_unused(folder: Path, before: datetime) -> Iterator[KeptEnvironment]:
    """Environments that nothing used since a time, the one unused the longest first.

    A folder without a mark is left alone: pip may be filling it.
    """
    environments = (_read(mark) for mark in folder.glob(f"*/{COMPLETE}") if not mark.parent.is_symlink())
    unused = (environment for environment in environments if environment.used < before)
    yield from sorted(unused, key=lambda environment: environment.used)


def remove_environment(environment: KeptEnvironment) -> None:
    """Remove an environment: its mark first, so that nothing uses a part of it."""
    (environment.folder / COMPLETE).unlink()
    shutil.rmtree(environment.folder)


def _read(mark: Path) -> KeptEnvironment:
    used = datetime.fromtimestamp(mark.stat().st_mtime, UTC)
    size = sum(path.lstat().st_size for path in mark.parent.rglob("*"))
    return KeptEnvironment(mark.parent, _list_packages(mark.with_name(NAMED)), used, size)


def _list_packages(named: Path) -> str:
    try:
        lines = named.read_text(encoding="utf8", errors="replace").splitlines()
    except OSError:
        return ""
    return " ".join(line for line in lines if line.startswith(OWN))


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
