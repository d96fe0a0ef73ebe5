"""Reading and writing record files: each is whole or not there at all. A missing value is null, never 0 or NaN."""

from __future__ import annotations

import gzip
import os
import tempfile
import zlib
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from harness.record.launches import LaunchRecord
from harness.record.layout import RunFolder
from harness.record.runs import SCHEMA_VERSION, Manifest, Run

S = TypeVar("S")


class RecordError(Exception):
    """A run cannot be used; the message names the file, what is wrong with it, and what to do where that helps."""


class UnreadableError(RecordError):
    """The file is missing or damaged; what else the run has left may still be read."""


def write_json(path: Path, record: msgspec.Struct) -> None:
    """Writes a record whole or not at all; a `.gz` path is compressed."""
    data = msgspec.json.format(msgspec.json.encode(record), indent=1)
    write_bytes(path, gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def write_bytes(path: Path, data: bytes, *, lasting: bool = True) -> None:
    """Writes a file whole or not at all: to a temporary neighbour first, then renamed into place.

    Args:
      lasting: Whether it must survive a power cut, which takes the disk some milliseconds to promise.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if lasting:
                os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def read_json(path: Path, kind: type[S]) -> S:
    """Reads one record.

    Raises:
      UnreadableError: The file cannot be read, is damaged, or does not fit the schema.
    """
    return _decode(path, _read_bytes(path), kind)


def read_manifest(folder: RunFolder) -> Manifest:
    """Reads a run's manifest.

    Raises:
      UnreadableError: There is none, or it is damaged.
      RecordError: It is of a schema version that this jaxmeter does not read.
    """
    data = _read_bytes(folder.manifest)
    _check_version(folder.manifest, _decode(folder.manifest, data, _Versioned))
    return _decode(folder.manifest, data, Manifest)


def read_run(folder: RunFolder) -> Run:
    """Reads a run's commit mark, which holds its manifest and all its cases.

    Raises:
      UnreadableError, RecordError: As for a manifest.
    """
    data = _read_bytes(folder.mark)
    _check_version(folder.mark, _decode(folder.mark, data, _WithManifest).manifest)
    return _decode(folder.mark, data, Run)


def _read_bytes(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if path.suffix == ".gz" else data
    except (OSError, EOFError, zlib.error) as error:
        raise UnreadableError(f"{path}: cannot be read: {error}") from error


def _decode(path: Path, data: bytes, kind: type[S]) -> S:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableError(f"{path}: not a record of jaxmeter, or damaged: {error}") from error


class _Versioned(msgspec.Struct):
    """What every manifest tells, of whatever version."""

    schema_version: int


class _WithManifest(msgspec.Struct):
    """What every commit mark holds, of whatever version."""

    manifest: _Versioned


def _check_version(path: Path, found: _Versioned) -> None:
    if found.schema_version == SCHEMA_VERSION:
        return
    what = f"{path}: schema version {found.schema_version}, this jaxmeter reads {SCHEMA_VERSION}"
    if found.schema_version > SCHEMA_VERSION:
        raise RecordError(f"{what}; use a newer jaxmeter")
    raise RecordError(f"{what}; it is older than the first release: measure again")


def json_schema() -> dict[str, Any]:
    """JSON Schema of run.json, with every structure that it holds, and of the launch files."""
    _, components = msgspec.json.schema_components([Run, LaunchRecord], ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"jaxmeter record, schema version {SCHEMA_VERSION}",
        "anyOf": [{"$ref": "#/$defs/Run"}, {"$ref": "#/$defs/LaunchRecord"}],
        "$defs": components,
    }
