"""The locks: uv.lock holds every version once, and each environment's requirements are exported from it."""

from __future__ import annotations

from collections.abc import Iterator

from launcher.backends import ENVIRONMENTS
from launcher.images import LOCKS

DEVELOPMENT = ("--group", "dev")


def lock_path(name: str) -> str:
    """Where the requirements of an environment are, from the root of a checkout."""
    return (LOCKS / f"{name}.txt").as_posix()


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
