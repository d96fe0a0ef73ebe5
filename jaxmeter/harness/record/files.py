"""Reading and writing record files: each is whole or not there at all. A missing value is null, never 0 or NaN."""

from __future__ import annotations

import gzip
import io
import os
import secrets
import stat
import tempfile
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import msgspec

S = TypeVar("S")

LARGEST_RECORD = 256 * 2**20
"""Most bytes of one record, unpacked. A case takes about 20 KiB of a commit mark, which contains all cases of a run."""

_PACKER = msgspec.msgpack.Encoder()
"""Takes integers of 64 bits, with a sign or without, and no larger ones."""

LEAST_INTEGER, LARGEST_INTEGER = -(2**63), 2**64 - 1
"""Range of 64-bit integers, with a sign or without."""


def now() -> str:
    """The time in UTC, as records hold it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def make_run_id(backend: str) -> str:
    """A new run's name, such as 2026-08-22T02-00-03Z-cpu-1f0c9a7: it sorts by time, and any file system takes it."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%SZ}-{backend}-{secrets.token_hex(4)[:7]}"


class RecordError(Exception):
    """A run cannot be used; the message names the file, what is wrong with it, and what to do where that helps."""


class UnreadableError(RecordError):
    """The file is missing or damaged; what else the run has left may still be read."""


def write_json(path: Path, record: msgspec.Struct) -> None:
    """Writes a record whole or not at all; a `.gz` path is compressed."""
    data = encode_json(record)
    write_bytes(path, gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def encode_json(record: msgspec.Struct) -> bytes:
    """Return a record as the JSON that files hold."""
    return msgspec.json.format(msgspec.json.encode(record), indent=1)


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
    return decode(path, read_bytes(path), kind)


def read_bytes(path: Path) -> bytes:
    """The bytes of a record, unpacked.

    Raises:
      UnreadableError: The file cannot be read, not unpacked, is no regular one, or has more than LARGEST_RECORD bytes.
    """
    try:
        data = _read_regular(path, path.stat(), LARGEST_RECORD)
        return _unpack(data) if path.suffix == ".gz" else data
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise UnreadableError(f"{path}: cannot be read: {error}") from error


def read_kept(path: Path, most: int) -> bytes:
    """Return the bytes of a file that a run keeps in addition to its numbers.

    Raises:
      OSError: The file cannot be read.
      UnreadableError: It is not a regular file, or has more than `most` bytes: a run may come from anywhere.
    """
    try:
        return _read_regular(path, path.lstat(), most)
    except ValueError as error:
        raise UnreadableError(f"{path.name} {error}") from error


def _read_regular(path: Path, found: os.stat_result, most: int) -> bytes:
    """The bytes of a file. A pipe would never answer, and a device never end; so neither is opened.

    Raises:
      OSError: It cannot be read.
      ValueError: What was found is no regular file, or it has more than `most` bytes.
    """
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("is no regular file")
    if found.st_size > most:
        raise ValueError(f"has {found.st_size} bytes, over {most}")
    with path.open("rb") as file:
        return file.read(most)


def _unpack(data: bytes) -> bytes:
    """What is packed; a few bytes may stand for any number of them.

    Raises:
      OSError, EOFError, zlib.error: It is damaged.
      ValueError: It has more than LARGEST_RECORD bytes.
    """
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        unpacked = file.read(LARGEST_RECORD + 1)
    if len(unpacked) > LARGEST_RECORD:
        raise ValueError(f"has over {LARGEST_RECORD} bytes once unpacked")
    return unpacked


def decode(path: Path, data: bytes, kind: type[S]) -> S:
    """One record from the bytes of its file.

    Raises:
      UnreadableError: They are damaged, or do not fit the schema.
    """
    try:
        record = msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableError(f"{path}: not a record of jaxmeter, or damaged: {error}") from error
    try:
        _PACKER.encode_into(record, bytearray())  # at a tenth of what decoding takes
    except OverflowError:
        _refuse_large_integers(path, record)
    return record


def _refuse_large_integers(path: Path, record: object) -> None:
    """Raises UnreadableError where a record holds an integer that 64 bits do not: no reader's encoding has it."""
    left = [msgspec.to_builtins(record)]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            left += value.values()
        elif isinstance(value, list | tuple):
            left += value
        elif isinstance(value, int) and not LEAST_INTEGER <= value <= LARGEST_INTEGER:
            raise UnreadableError(
                f"{path}: holds an integer of {value.bit_length()} bits, but records allow integers from -2^63 to "
                "2^64 - 1; correct it, or leave this run out"
            )
