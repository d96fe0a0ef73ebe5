"""The run folder: every path in it, and reading and writing files that are whole or not there at all."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import secrets
import stat
import tempfile
import zlib
from dataclasses import dataclass
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


def _read_regular(path: Path, status: os.stat_result, most: int) -> bytes:
    """The bytes of a file. A pipe would never answer, and a device never end; so neither is opened.

    Raises:
      OSError: It cannot be read.
      ValueError: What was found is no regular file, or it has more than `most` bytes.
    """
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("is no regular file")
    if status.st_size > most:
        raise ValueError(f"has {status.st_size} bytes, over {most}")
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


PROGRAM_TEXTS = {"jaxpr": "jaxpr.txt", "stablehlo": "stablehlo.mlir", "hlo": "hlo.txt"}
"""Kinds of artifact that are a program's text, and their file names; from what JAX traced to what XLA compiled."""

EXPORTED = "jaxexport"
"""The kind of artifact that a later run can compile and run again."""

LARGEST_PROGRAM = 32 * 2**20
"""Bytes of a kept program. Constants are part of one; a larger one would outweigh all else that a run keeps."""

LARGEST_CAPTURE = 2 * 2**30
"""Bytes of a file of a capture. A capture is one message of protobuf, which has less than 2 GiB."""

_PROGRAM_FILES = {**PROGRAM_TEXTS, EXPORTED: "program.jaxexport"}

LONGEST_READABLE = 80
"""Characters of a file's name before its hash: file systems take 255 bytes."""

_REPLACED = ".replaced.json.gz"

SELF_TESTS, PEAKS = ".self-tests", ".peaks"
"""Folders next to the runs with a file for each machine; `results/*` in a shell is without them."""


@dataclass(frozen=True)
class CaseFolder:
    """The folder of one case."""

    path: Path

    @property
    def record(self) -> Path:
        """What was measured of the case."""
        return self.path / "case.json"

    def processes(self, kind: str = "*") -> list[Path]:
        """The file of every process, in their order, without those that another has replaced."""
        paths = (self.path / "processes").glob(f"[0-9][0-9][0-9][0-9]-{kind}.json.gz")
        return sorted(path for path in paths if not path.name.endswith(_REPLACED))

    def next_process(self, kind: str) -> Path:
        """The file of the process that is written next."""
        last = max((int(path.name[:4]) for path in self.processes()), default=-1)
        return self.path / "processes" / f"{last + 1:04d}-{kind}.json.gz"

    def programs(self, variant: str) -> Path:
        """Where a variant's program texts are kept."""
        return self.path / "programs" / _as_folder(variant)

    def exported(self, variant: str) -> Path:
        """A variant's program, which a later run can compile and run again; of a replay, the one that it runs."""
        return self.programs(variant) / _PROGRAM_FILES[EXPORTED]

    def trace(self, variant: str) -> Path:
        """Where a variant's captures are kept: what `xprof --logdir` takes."""
        return self.path / "trace" / _as_folder(variant)

    def artifacts(self, kind: str, variant: str) -> list[Path]:
        """Files of a kind that a variant has left: its captures, or a text of its program."""
        paths = self.trace(variant).rglob("*") if kind == "trace" else [self.programs(variant) / _PROGRAM_FILES[kind]]
        return sorted(path for path in paths if path.is_file())


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run, whether it exists or not."""

    path: Path

    @property
    def manifest(self) -> Path:
        """What the run set out to do."""
        return self.path / "manifest.json"

    @property
    def mark(self) -> Path:
        """The commit mark: there once the run has ended."""
        return self.path / "run.json"

    @property
    def stop(self) -> Path:
        """Why the run has stopped before its last case."""
        return self.path / "stopped.json"

    @property
    def cases(self) -> Path:
        """The folder of all case folders."""
        return self.path / "cases"

    def list_processes(self) -> list[Path]:
        """Return the process files of all cases, in their order."""
        return [path for case in sorted(self.cases.glob("*")) for path in CaseFolder(case).processes()]

    def case(self, case_id: str) -> CaseFolder:
        """The folder of a case."""
        return CaseFolder(self.cases / case_id)


def locate_capture(path: str) -> str | None:
    """The folder of the capture that a file belongs to, by its path in the run; None of any other file."""
    match path.split("/"):
        case ["cases", case, "trace", variant, _, *_]:
            return f"cases/{case}/trace/{variant}"
    return None


def name_replaced(process: Path) -> Path:
    """The file of a contended process that the process of a file has replaced."""
    return process.with_name(process.name.removesuffix(".json.gz") + _REPLACED)


def _as_folder(variant: str) -> str:
    """A variant's name as that of one folder: a record may hold any name, and none leads elsewhere."""
    name = re.sub(r"[:/\\\0]", "-", variant)
    return name if name.strip(".") else f"-{name}"


def name_file(name: str) -> str:
    """The name as that of a file or folder: readable, safe on every file system, and unlike for unlike names."""
    readable = re.sub(r"[^A-Za-z0-9=._-]+", "-", name).strip("-")[:LONGEST_READABLE]
    return f"{readable}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
