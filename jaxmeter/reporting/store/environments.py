"""Python environments that upgrades and bisections keep on this machine: those that nothing used for some time."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

MARK = "complete"
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
    environments = (_read(mark) for mark in folder.glob(f"*/{MARK}") if not mark.parent.is_symlink())
    unused = (environment for environment in environments if environment.used < before)
    yield from sorted(unused, key=lambda environment: environment.used)


def remove(environment: KeptEnvironment) -> None:
    """Remove an environment: its mark first, so that nothing uses a part of it."""
    (environment.folder / MARK).unlink()
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
