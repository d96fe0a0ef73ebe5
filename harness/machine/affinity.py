"""Which cores the threads of this process run on."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_TASKS = Path("/proc/self/task")


def can_choose_cores() -> bool:
    """Whether the system lets a process choose; macOS does not."""
    return hasattr(os, "sched_setaffinity") and _TASKS.is_dir()


def keep_on_cores(count: int, index: int) -> None:
    """Has every thread of this process run on so many of its cores; where the system cannot do that, on any.

    Args:
      index: Which of them: those that follow the ones of the index before, counted around.
    """
    if not can_choose_cores():
        return
    allowed = sorted(os.sched_getaffinity(0))
    chosen = {allowed[(index * count + number) % len(allowed)] for number in range(count)}
    for task in _TASKS.iterdir():
        with suppress(ProcessLookupError):  # it has ended
            os.sched_setaffinity(int(task.name), chosen)
