"""What a forked process has to do with its parent and with what it starts itself."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """On Linux: the kernel ends this process when its parent ends, however that happens."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def offer_to_out_of_memory_killer() -> None:
    """The measured process shall be chosen, not the one that keeps the record."""
    try:
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    except OSError:  # not Linux, or not allowed: the kernel's own choice stands
        return


def begin_session() -> None:
    """Makes this process a session of its own, so that ending it ends whatever it has started."""
    os.setsid()
    die_with_parent()
    offer_to_out_of_memory_killer()
