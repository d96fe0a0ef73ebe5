"""Detection of a full disk in an error, and the exit code of a process that met one. It is no result of a variant."""

from __future__ import annotations

import errno
import os

FULL = (errno.ENOSPC, errno.EDQUOT)

EXIT_CODE = 74
"""Exit code of a process that could not write: EX_IOERR of sysexits.h ("an error occurred while doing I/O on some
file")."""


def is_disk_full(error: BaseException | None) -> bool:
    """Return whether an error or one of its causes reports a full disk, by its number or by the message from C++."""
    words = tuple(map(os.strerror, FULL))
    while error is not None:
        if isinstance(error, OSError) and error.errno in FULL:
            return True
        if isinstance(error, RuntimeError) and any(message in str(error) for message in words):
            return True
        error = error.__cause__ or error.__context__
    return False
