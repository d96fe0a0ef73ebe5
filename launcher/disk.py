"""Free room on disks."""

from __future__ import annotations

import shutil


def free_bytes(folder: str | None) -> int | None:
    """Free room where a folder is; None where it is not on this machine, as with an engine in a virtual machine."""
    if folder is None:
        return None
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None
