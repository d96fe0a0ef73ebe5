"""The series' numbers of an older run in a small file beside its copy in the cache: a page needs no more of it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from jaxmeter.harness.record import SCHEMA_VERSION, RunFolder, RunRecord, write_bytes

from .seals import read_sum

FILE = ".times.msgpack"
FORMAT = b"2.%d\n" % SCHEMA_VERSION
"""What the file begins with, before the sum of the run that it is of."""


def read_cut(folder: RunFolder) -> RunRecord | None:
    """The run with its series' numbers alone; None where that is not in the cache."""
    known, data = read_sum(folder), _read(folder.path / FILE)
    if known is None or data is None or not data.startswith(FORMAT + known):
        return None
    try:
        return msgspec.msgpack.decode(memoryview(data)[len(FORMAT) + len(known) :], type=RunRecord)
    except (msgspec.DecodeError, RecursionError):
        return None


def keep_cut(folder: RunFolder, run: RunRecord) -> None:
    """Keeps the series' numbers of a run in the cache; without room for them, it is read whole again."""
    known = read_sum(folder)
    if known is None:
        return
    try:
        write_bytes(folder.path / FILE, FORMAT + known + msgspec.msgpack.encode(run), lasting=False)
    except OSError:
        return


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
