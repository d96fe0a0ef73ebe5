"""Reads runs of a store through a cache: what has ended never changes, so it is fetched once."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec

from jaxmeter.harness.record import RunFolder, write_bytes

from ..load import find_start, is_sealed, is_sound, seal
from .push import is_capture
from .stores import MANIFEST, MARK, Store, StoreError, describe_excess, is_run_id, open_store, persist

MOST_NAMED = 5

_OF_A_NAME = (errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EILSEQ, errno.EINVAL)
"""Errors of a name that a store can have and a folder cannot: too long, or of a file and of a folder at once."""


@dataclass(frozen=True)
class Fetched:
    """Runs of a store, as folders in the cache.

    Args:
      warnings: What is in the store and is no whole run.
      older: How many runs were not asked for.
    """

    folders: tuple[Path, ...]
    warnings: tuple[str, ...] = ()
    older: int = 0


def find_cache() -> Path:
    """Where runs of stores are kept: `$JAXMETER_CACHE`, else in the user's cache folder."""
    given = os.environ.get("JAXMETER_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jaxmeter"


def fetch(url: str, cache: Path | None = None, *, since: str = "", last: int | None = None) -> Fetched:
    """The records of all whole runs in a store, or of the one that the URL names; without their artifacts.

    Args:
      since: Without runs that began before, as for `choose_folders`; of those the manifest alone is asked for.
      last: Without all but so many of the newest whole runs.
    Raises:
      StoreError: There is no such store, it refuses, or holds no whole run.
      BrokenOffError: It cannot be reached.
    """
    store, only = _locate(url)
    names = (only,) if only else store.list_folders()
    cache = find_cache() if cache is None else cache
    refused: dict[str, str] = {}
    if since or last is not None:
        whole, looked_at = _fetch_newest(store, names, cache, refused, since, last)
    else:
        whole, looked_at = _fetch_records(store, names, cache, refused), list(names)
    older = len(names) - len(looked_at)
    if not whole and not older:
        why = "; ".join(refused.values()) or f"{url}: has no complete run; `jaxmeter push RUN {url}` puts one there"
        raise StoreError(why)
    rest = _name_rest(store, [name for name in looked_at if name not in whole and name not in refused])
    return Fetched(tuple(whole[name] for name in names if name in whole), (*refused.values(), *rest), older)


def fetch_named(url: str, names: Sequence[str], cache: Path | None = None) -> tuple[Path, ...]:
    """The records of some runs of a store, without those that are not whole there.

    Raises:
      StoreError, BrokenOffError: As for `fetch`.
    """
    return tuple(_fetch_records(open_store(url), names, find_cache() if cache is None else cache, {}).values())


def _fetch_newest(
    store: Store, names: Sequence[str], cache: Path, refused: dict[str, str], since: str, last: int | None
) -> tuple[dict[str, Path], list[str]]:
    """Whole runs as from `_fetch_records`, and all names that were looked at: those without a manifest, too."""
    started = _find_starts(store, names, cache)
    looked_at = [name for name in names if name not in started]
    whole = _fetch_records(store, looked_at, cache, refused)
    left = sorted((name for name in started if started[name] >= since), key=lambda name: (started[name], name))
    lacking = len(left) if last is None else last
    while left and lacking > 0:
        left, newest = left[:-lacking], left[-lacking:]
        fetched = _fetch_records(store, newest, cache, refused)
        whole |= fetched
        looked_at += newest
        lacking -= len(fetched)
    return whole, looked_at


def _find_starts(store: Store, names: Sequence[str], cache: Path) -> dict[str, str]:
    """When runs began, by name; from their manifests, which the cache keeps."""
    here = {name: _folder(cache, store, name) for name in names if is_run_id(name)}
    lacking = [name for name, folder in here.items() if find_start(RunFolder(folder)) is None]
    sizes = persist(partial(store.measure, [f"{name}/{MANIFEST}" for name in lacking]))
    for contents in store.read_in_sets({path: size for path, size in sizes.items() if not describe_excess(path, size)}):
        for path, data in contents.items():
            _write(here[path.partition("/")[0]] / MANIFEST, data)
    started = {name: find_start(RunFolder(folder)) for name, folder in here.items()}
    return {name: begun for name, begun in started.items() if begun is not None}


def _fetch_records(store: Store, names: Sequence[str], cache: Path, refused: dict[str, str]) -> dict[str, Path]:
    """Folders in the cache of those runs that are whole, by name.

    Args:
      refused: Gets the runs that are too large to be read, and a sentence on each.
    """
    here = {name: _folder(cache, store, name) for name in names}
    wanted = [name for name in names if is_run_id(name) and not is_sound(RunFolder(here[name]))]
    sizes = persist(partial(store.measure, [f"{name}/{MARK}" for name in wanted]))
    for path in [path for path, size in sizes.items() if describe_excess(path, size)]:
        excess = describe_excess(path, sizes.pop(path))
        refused[path.partition("/")[0]] = f"{store.name(path)}: {excess}; the run is left out"
    with ThreadPoolExecutor(max_workers=1) as writer:  # the next ones come while these are written
        kept: list[Future[None]] = []
        for marks in store.read_in_sets(sizes):
            _await(kept)
            kept = [writer.submit(_keep, here[path.partition("/")[0]], mark) for path, mark in marks.items()]
        _await(kept)
    return {name: folder for name, folder in here.items() if is_sealed(RunFolder(folder))}


def _await(kept: Sequence[Future[None]]) -> None:
    """Until they are written: memory holds no more than two batches."""
    for future in kept:
        future.result()


def fetch_whole(url: str, cache: Path | None = None, *, note: Callable[[str], object] = lambda words: None) -> Path:
    """One run with its programs and texts, as a comparison of programs and a measurement beside it need them.

    Captures stay in the store: they are the largest files, and only `jaxmeter trace` shows them.

    Args:
      note: Called with a sentence on each file that is not fetched: it is too large, or its name cannot be one here.
    Raises:
      StoreError, BrokenOffError: As for `fetch`.
    """
    store, only = _locate(url)
    if not only:
        names = store.list_folders()
        hint = f", such as {store.name(names[-1])}" if names else ""
        raise StoreError(f"{url}: is a store of runs; name one of them{hint}")
    (folder,) = fetch(url, cache).folders
    there = persist(partial(store.list_files, only))
    lacking = {path: size for path, size in there.items() if _is_wanted(path) and not _has(folder / path, size)}
    for path in [path for path, size in lacking.items() if describe_excess(path, size)]:
        note(f"{store.name(only, path)}: {describe_excess(path, lacking.pop(path))}; it is not fetched")
    for contents in store.read_in_sets({f"{only}/{path}": size for path, size in lacking.items()}):
        for path, data in contents.items():
            if fault := _write_named(folder / path.removeprefix(f"{only}/"), data):
                note(f"{store.name(path)}: no file here can have this name ({fault}); it is not fetched")
    return folder


def _locate(url: str) -> tuple[Store, str]:
    """The store, and the name of the run in it that the URL is of; empty where it is the store's own."""
    store = open_store(url)
    if persist(partial(store.look_up, MARK)) is None:
        return store, ""
    parent, _, name = url.rstrip("/").rpartition("/")
    return open_store(parent), name


def _folder(cache: Path, store: Store, name: str) -> Path:
    return cache / "runs" / hashlib.sha256(store.url.rstrip("/").encode()).hexdigest()[:16] / name


def _keep(folder: Path, mark: bytes) -> None:
    """A run's record in the cache, the sum of which is written last."""
    try:
        manifest = bytes(msgspec.json.decode(mark, type=dict[str, msgspec.Raw])["manifest"])
    except (msgspec.DecodeError, KeyError, RecursionError):
        return  # damaged: named as no whole run
    _write(folder / MANIFEST, manifest)
    _write(folder / MARK, mark)
    try:
        seal(RunFolder(folder), mark)
    except OSError as error:
        raise _unwritable(folder, error) from error


def _write(path: Path, data: bytes) -> None:
    """A file of the cache.

    Raises:
      StoreError: It cannot be written.
    """
    try:
        write_bytes(path, data, lasting=False)
    except OSError as error:
        raise _unwritable(path, error) from error


def _write_named(path: Path, data: bytes) -> str:
    """Write a file of the cache under a name that its store has; why none can have it here, or nothing.

    Raises:
      StoreError: The cache cannot be written.
    """
    try:
        write_bytes(path, data, lasting=False)
    except ValueError as error:
        return str(error)
    except OSError as error:
        if error.errno in _OF_A_NAME:
            return error.strerror or str(error)
        raise _unwritable(path, error) from error
    return ""


def _unwritable(path: Path, error: OSError) -> StoreError:
    return StoreError(f"{path}: cannot be written ({error.strerror}); set $JAXMETER_CACHE to a folder that can")


def _has(path: Path, size: int) -> bool:
    try:
        return path.stat().st_size == size
    except (OSError, ValueError):
        return False


def _is_wanted(path: str) -> bool:
    """Whether a name in a store stays in the folder of its run, and is no capture."""
    return not is_capture(path) and not any(part in ("", ".", "..") for part in path.split("/"))


def _name_rest(store: Store, names: Sequence[str]) -> list[str]:
    if not names:
        return []
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    what = f"{', '.join(names[:MOST_NAMED])}{more} {'is no whole run' if len(names) == 1 else 'are no whole runs'}"
    return [f"{store.url}: {what}, left out: not finished, damaged, or of another tool"]
