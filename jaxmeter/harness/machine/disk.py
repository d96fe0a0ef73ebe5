"""A full disk: how an error tells of it, and how a process that met one ends. It is no result of what was measured."""

from __future__ import annotations

import errno
import os

FULL = (errno.ENOSPC, errno.EDQUOT)

EXIT_CODE = 74
"""Of a process that could not write: EX_IOERR of sysexits.h, "an error occurred while doing I/O on some file"."""


def is_disk_full(error: BaseException | None) -> bool:
    """Whether an error, or one that it came from, says so: by its number, or in the words that C++ passes on."""
    words = tuple(map(os.strerror, FULL))
    while error is not None:
        if isinstance(error, OSError) and error.errno in FULL:
            return True
        if isinstance(error, RuntimeError) and any(one in str(error) for one in words):
            return True
        error = error.__cause__ or error.__context__
    return False
