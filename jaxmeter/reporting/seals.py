"""What tells that a run in the cache is as it was fetched."""

from __future__ import annotations

import hashlib
from pathlib import Path

from jaxmeter.harness.record import RunFolder, write_bytes

SEAL = ".run.json.sha256"
"""Beside each run in the cache, written last: the sum of its record in hexadecimal; its size in bytes and the time of
its last change in ns, by which it is known again without reading it."""


def seal(folder: RunFolder, data: bytes) -> None:
    """Says that the record of a run is there, whole.

    Args:
      data: What the record holds.

    Raises:
      OSError: It cannot be written.
    """
    write_bytes(folder.path / SEAL, b" ".join([_sum(data), *_describe(folder.mark)]), lasting=False)


def is_sealed(folder: RunFolder) -> bool:
    """Whether the cache holds the record of a run."""
    return read_sum(folder) is not None


def is_sound(folder: RunFolder) -> bool:
    """Whether the record is the one that was sealed; read again only where the file has changed, as one copied has."""
    try:
        known, *described = (folder.path / SEAL).read_bytes().split()
        return described == _describe(folder.mark) or known == _sum(folder.mark.read_bytes())
    except (OSError, ValueError):
        return False


def read_sum(folder: RunFolder) -> bytes | None:
    """The sum of a record in the cache; None of any other."""
    try:
        return (folder.path / SEAL).read_bytes().partition(b" ")[0]
    except OSError:
        return None


def _sum(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()


def _describe(path: Path) -> list[bytes]:
    found = path.stat()
    return [b"%d" % found.st_size, b"%d" % found.st_mtime_ns]
