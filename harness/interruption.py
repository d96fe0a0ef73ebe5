"""Ctrl-C while one of our programs imports its parts: it ends at once and without words, since nothing has begun.

Else NumPy would make an ImportError of it, which ends with 1: a confirmed regression. `record.endings` undoes this.
"""

from __future__ import annotations

import signal
import sys

PROGRAMS = ("harness", "reporting")


def _is_program() -> bool:
    """Whether Python is about to run one of them, and does not import this for another."""
    return sys.argv[:1] == ["-m"] and sys.orig_argv[-len(sys.argv)] in PROGRAMS  # so it says while it looks for it


if _is_program() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else somebody ignores it
    signal.signal(signal.SIGINT, signal.SIG_DFL)
