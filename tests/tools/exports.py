"""The exports of uv.lock: what pip installs, on every platform and Python version."""

from __future__ import annotations

from collections.abc import Iterator

from jaxmeter.launch.images import LOCKS, STORES_LOCK, locate_lock

ALL = ("--extra", "all")
DEVELOPMENT = (*ALL, "--group", "dev")
LAUNCH = ("--only-group", "launch")
"""What the command line needs to call programs in other environments."""


def list_exports() -> Iterator[tuple[str, list[str]]]:
    """(name, command line) of every export: hashed requirements for pip, on every platform and Python version."""
    selections = {name: (*ALL, *lock.extras) for name, lock in LOCKS.items()}
    cloud = (*DEVELOPMENT, *LOCKS[STORES_LOCK].extras, "--group", "cloud")
    selections |= {"dev": DEVELOPMENT, "docs": (*ALL, "--group", "docs"), "cloud": cloud, "launch": LAUNCH}
    for name, selection in selections.items():
        yield (
            name,
            [
                *("uv", "export", "--frozen", "--no-default-groups", "--no-emit-project", "--no-header", "--quiet"),
                *(*selection, "--output-file", locate_lock(name)),
            ],
        )
