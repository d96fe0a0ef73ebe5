"""A place that runs are pushed to and read from: a bucket, or a folder that several machines see."""

from __future__ import annotations

import errno
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from jaxmeter.document import numbers
from jaxmeter.harness.record.cases import find_nearest
from jaxmeter.harness.record.files import LARGEST_CAPTURE, LARGEST_RECORD, locate_capture
from jaxmeter.harness.record.wording import describe_missing

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

SCHEMES = ("s3", "gs", "gcs", "file")

MANIFEST, MARK = "manifest.json", "run.json"
"""The first file of a run and the last, as everywhere."""

VERDICTS = "verdicts"
"""The folder beside the runs that the verdicts on them are kept in."""

_RUN_ID = re.compile(r"[A-Za-z0-9=_-][A-Za-z0-9=._-]*")

_NO_FILE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)

AT_ONCE = 50
"""Files that are asked for together; LARGEST_RECORD limits their bytes, so memory holds no more than two such sets."""

ATTEMPTS = 5
FIRST_WAIT_S = 1.0
"""Waits double: 15 s in all. What lasts longer is no hiccup, and a person should know."""

SKEW = timedelta(hours=1)
"""Clocks that are kept right differ by seconds; one with the time zone in place of UTC differs by an hour or more."""

T = TypeVar("T")


class StoreError(Exception):
    """A store cannot be used as asked; the message says what to do. Exit code 2."""


class TakenError(StoreError):
    """Another run has the id."""


class BrokenOffError(Exception):
    """A transfer that did not come to its end; going on later completes it. Exit code 3."""


@dataclass(frozen=True)
class Stored:
    """A file of a store.

    Args:
      changed: When the store received it, by the store's own clock; None where the store does not say.
    """

    size_bytes: int
    changed: datetime | None


@dataclass(frozen=True)
class Store:
    """A folder of runs.

    Args:
      url: As it was given.
      base: Its path for the file system.
    """

    url: str
    files: AbstractFileSystem
    base: str

    def at(self, *parts: str) -> str:
        """The path of something in it."""
        return "/".join((self.base.rstrip("/"), *parts))

    def name(self, *parts: str) -> str:
        """The same as a person writes it."""
        return "/".join((self.url.rstrip("/"), *parts))

    def list_folders(self) -> tuple[str, ...]:
        """Names of the folders in it that may be runs, in order; what begins with a dot is nobody's business."""
        with translate_errors(self.url):
            entries = self.files.ls(self.base, detail=True, refresh=True)
        names = (entry["name"].rstrip("/").rpartition("/")[2] for entry in entries if entry["type"] == "directory")
        return tuple(sorted(name for name in names if name not in ("", VERDICTS) and not name.startswith(".")))

    def require_bucket(self) -> None:
        """Raises StoreError where the bucket is not there or may not be read; a folder need not be there yet."""
        with translate_errors(self.url):
            if not self.is_local:
                self.files.ls(self.base.partition("/")[0], refresh=True)
            elif os.path.lexists(self.base):
                next(Path(self.base).iterdir(), None)

    def find(self, folder: str) -> dict[str, Stored]:
        """The files below a folder, by their path in it."""
        path = self.at(folder)
        if self.is_local:
            self.require_bucket()  # fsspec finds nothing in a folder that cannot be read, and says nothing of it
        with translate_errors(self.url):
            try:
                entries = self.files.find(path, detail=True, refresh=True)
            except FileNotFoundError:
                return {}
        return {name.removeprefix(f"{path}/"): _describe(entry) for name, entry in entries.items()}

    def list_files(self, folder: str) -> dict[str, int]:
        """Sizes of the files below a folder, by their path in it."""
        return {path: stored.size_bytes for path, stored in self.find(folder).items()}

    def look_up(self, *parts: str) -> Stored | None:
        """What a store says of a file without reading it; None where there is none."""
        with translate_errors(self.url):
            try:
                entry = self.files.info(self.at(*parts))
            except _NO_FILE:
                return None
        return _describe(entry) if entry["type"] == "file" else None

    def read_clock(self) -> datetime | None:
        """The time of a folder's file system, which may be a server's; None of a bucket, which stamps its objects."""
        if not self.is_local:
            return None
        try:
            with tempfile.NamedTemporaryFile(dir=self.base, prefix=".clock-") as file:
                return datetime.fromtimestamp(Path(file.name).stat().st_mtime, UTC)
        except OSError:  # it cannot be written
            return datetime.now(UTC)

    def measure(self, paths: Sequence[str]) -> dict[str, int]:
        """Sizes of files, by their path in the store; without those that are not there."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            stored = zip(paths, pool.map(self.look_up, paths), strict=True)
            return {path: file.size_bytes for path, file in stored if file is not None}

    def read(self, *parts: str) -> bytes | None:
        """A file; None where there is none.

        Raises:
          StoreError: It is larger than any that jaxmeter writes.
        """
        stored = self.look_up(*parts)
        if stored is None:
            return None
        if excess := describe_excess(parts[-1], stored.size_bytes):
            raise StoreError(f"{self.name(*parts)}: {excess}; remove it from the store")
        with translate_errors(self.url):
            try:
                data: bytes = self.files.cat_file(self.at(*parts))
            except _NO_FILE:
                return None
        return data

    def read_in_sets(self, sizes: Mapping[str, int]) -> Iterator[dict[str, bytes]]:
        """Files of known sizes, by their path in the store: a set is AT_ONCE files and LARGEST_RECORD bytes at most."""
        chosen: list[str] = []
        total = 0
        for path, size in sizes.items():
            if chosen and (len(chosen) == AT_ONCE or total + size > LARGEST_RECORD):
                yield persist(partial(self.read_all, chosen))
                chosen, total = [], 0
            chosen.append(path)
            total += size
        if chosen:
            yield persist(partial(self.read_all, chosen))

    def read_all(self, paths: Sequence[str]) -> dict[str, bytes]:
        """Many files at once, by their path in the store; without those that are not there."""
        full = {self.at(path): path for path in paths}
        with translate_errors(self.url):
            plain = [name for name in full if not has_magic(name)]
            answers: dict[str, Any] = self.files.cat(plain, on_error="return") if plain else {}
            answers |= {name: self.files.cat_file(name) for name in full.keys() - set(plain)}
            for answer in answers.values():
                if isinstance(answer, Exception) and not isinstance(answer, _NO_FILE):
                    raise answer
        return {full[name]: data for name, data in answers.items() if isinstance(data, bytes)}

    def send(self, sent: Mapping[Path, Sequence[str]]) -> None:
        """Writes local files, over what is there; by the parts of each path in the store."""
        with translate_errors(self.url):
            self.files.put(list(map(str, sent)), [self.at(*parts) for parts in sent.values()])

    def create(self, data: bytes, *parts: str) -> bool:
        """Writes a file that is not there yet; false where somebody else has."""
        path = self.at(*parts)
        with translate_errors(self.url):
            try:
                if self.is_local:
                    _create_file(Path(path), data)
                else:
                    self.files.pipe_file(path, data, mode="create")
            except FileExistsError:
                return False
        return True

    @property
    def is_local(self) -> bool:
        """Whether it is a folder of this machine, or one that is mounted."""
        return "file" in self.files.protocol


def _describe(entry: Mapping[str, Any]) -> Stored:
    """What a listing says of a file: S3 has `LastModified`, the others `mtime`, a time or seconds since 1970."""
    changed = entry.get("LastModified", entry.get("mtime"))
    if isinstance(changed, int | float):
        changed = datetime.fromtimestamp(changed, UTC)
    return Stored(entry["size"], changed if isinstance(changed, datetime) else None)


def read_time(text: str) -> datetime | None:
    """A time of a record, in UTC where it names no zone; None where it is none."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _create_file(path: Path, data: bytes) -> None:
    """A file that is there whole or not at all, where nobody has made one; fsspec looks first, and writes then."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        path.hardlink_to(temporary)
    finally:
        Path(temporary).unlink()


def describe_excess(path: str, size_bytes: int) -> str:
    """Why a file of a run is not copied or read: it is larger than any that jaxmeter reads; empty where it is not.

    Args:
      path: In the run.
    """
    most = LARGEST_RECORD if locate_capture(path) is None else LARGEST_CAPTURE
    return f"has {numbers.memory(size_bytes)}, over {numbers.memory(most)}" if size_bytes > most else ""


def has_magic(path: str) -> bool:
    """Whether a file system would take it for a pattern."""
    return any(sign in path for sign in "*?[]")


def is_run_id(name: str) -> bool:
    """Whether a run of this id can be in a store."""
    return _RUN_ID.fullmatch(name) is not None and name != VERDICTS


def is_url(text: str) -> bool:
    """Whether it names a store, and not a local folder."""
    return "://" in text


def open_store(url: str) -> Store:
    """The store of a URL.

    Raises:
      StoreError: Nobody knows such a URL, or what reads it is not installed.
    """
    scheme, _, rest = url.partition("://")
    if scheme not in SCHEMES:
        nearest = find_nearest(scheme, SCHEMES) or "s3"
        raise StoreError(f"{url}: nothing reads '{scheme}://'; nearest: {nearest}://, or a folder's path")
    if "@" in rest.partition("/")[0]:
        raise StoreError(
            f"{scheme}://…: a URL with a password; give credentials as the cloud's command-line tool takes them"
        )
    if not rest.strip("/") or (scheme == "file" and not rest.startswith("/")):
        raise StoreError(f"{url}: names no bucket; write {scheme}://{'/' if scheme == 'file' else 'bucket/'}folder")
    if has_magic(url) or "::" in url:
        raise StoreError(f"{url}: a store's path has none of * ? [ ] ::; choose another")
    import fsspec  # whoever reads local folders need not wait for it

    try:
        with translate_errors(url):
            local = {"auto_mkdir": True} if scheme == "file" else {}
            files, base = fsspec.core.url_to_fs(url, use_listings_cache=False, **local)
    except ImportError as error:
        raise StoreError(f"{url}: {describe_missing(error) or error}") from error
    return Store(url, files, base)


@contextmanager
def translate_errors(url: str) -> Iterator[None]:
    """Raise what a store's library complains of in words of jaxmeter: its own may contain keys and tokens.

    Raises:
      StoreError: The store refuses, or is not there.
      BrokenOffError: It cannot be reached now.
    """
    try:
        yield
    except (ImportError, StoreError, BrokenOffError):
        raise
    except FileNotFoundError as error:
        raise StoreError(f"{url}: no such bucket or folder") from error
    except PermissionError as error:
        raise StoreError(f"{url}: no access; check the credentials of this machine, and what they allow") from error
    except Exception as error:  # each library has errors of its own
        name = type(error).__name__
        if _is_about_credentials(error):
            raise StoreError(
                f"{url}: no usable credentials ({name}); give some as its command-line tool takes them"
            ) from error
        if "Validation" in name:
            raise StoreError(f"{url}: no name that a bucket can have") from error
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise BrokenOffError(f"{url}: no space left; free some, then repeat the command to continue") from error
        if isinstance(error, OSError) or _is_of_a_library(error):
            raise BrokenOffError(f"{url}: cannot be reached ({name}); try again") from error
        raise


def _is_about_credentials(error: Exception) -> bool:
    return "credential" in type(error).__name__.lower() or "Token" in type(error).__name__


def _is_of_a_library(error: Exception) -> bool:
    return type(error).__module__.partition(".")[0] in ("botocore", "aiobotocore", "s3fs", "gcsfs", "google", "aiohttp")


def persist(do: Callable[[], T], sleep: Callable[[float], object] = time.sleep) -> T:
    """Does something again where it broke off, after waits that double.

    Raises:
      BrokenOffError: It broke off each time.
    """
    wait_s = FIRST_WAIT_S
    for _ in range(ATTEMPTS - 1):
        try:
            return do()
        except BrokenOffError:
            sleep(wait_s)
            wait_s *= 2
    return do()
