"""The locks: uv.lock holds every version once, and each environment's requirements are exported from it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from launcher.backends import ENVIRONMENTS
from launcher.images import LOCKS

DEVELOPMENT = ("--group", "dev")
INSTALLERS = {"pip", "setuptools", "wheel"}
"""What an environment is made with."""


def lock_path(name: str) -> str:
    """Where the requirements of an environment are, from the root of a checkout."""
    return (LOCKS / f"{name}.txt").as_posix()


def foreign(lock: str, installed: str) -> list[str]:
    """Packages of an environment that its lock does not name, such as those of the lock that it was made from before.

    Args:
      lock: Text of a lock.
      installed: What `pip list --format=freeze` prints.
    """
    names = re.compile(r"^([A-Za-z0-9._-]+)==", re.MULTILINE)
    locked = {_canonical(name) for name in names.findall(lock)}
    return [name for name in names.findall(installed) if _canonical(name) not in locked | INSTALLERS]


def _canonical(name: str) -> str:
    """A package's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def exports() -> Iterator[tuple[str, list[str]]]:
    """(name, command line) of every export: hashed requirements for pip, on every platform and Python version."""
    selections = {name: environment.extras for name, environment in ENVIRONMENTS.items()} | {"dev": DEVELOPMENT}
    for name, selection in selections.items():
        yield (
            name,
            [
                *("uv", "export", "--frozen", "--no-default-groups", "--no-emit-project", "--no-header", "--quiet"),
                *(*selection, "--output-file", lock_path(name)),
            ],
        )
