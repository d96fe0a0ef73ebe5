"""Which locks are exported from uv.lock, and what an environment has that its lock does not name."""

from __future__ import annotations

import re

from packaging.utils import canonicalize_name

INSTALLERS = {"pip", "setuptools", "wheel"}
"""What an environment is made with."""


def find_unlocked(lock: str, installed: str) -> list[str]:
    """Packages of an environment that its lock does not name, such as those of the lock that it was made from before.

    Args:
      lock: Text of a lock.
      installed: What `pip list --format=freeze` prints.
    """
    names = re.compile(r"^([A-Za-z0-9._-]+)==", re.MULTILINE)
    locked = {canonicalize_name(name) for name in names.findall(lock)}
    return [name for name in names.findall(installed) if canonicalize_name(name) not in locked | INSTALLERS]
