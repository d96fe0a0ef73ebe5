"""Which cores the threads of this process run on."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_TASKS = Path("/proc/self/task")


def keep_on_one_core(index: int) -> None:
    """Has every thread of this process run on one of its cores alone; where the system cannot do that, on any.

    Args:
      index: Which of them; it counts around.
    """
    if not hasattr(os, "sched_setaffinity") or not _TASKS.is_dir():
        return
    cores = sorted(os.sched_getaffinity(0))
    for task in _TASKS.iterdir():
        with suppress(ProcessLookupError):  # it has ended
            os.sched_setaffinity(int(task.name), {cores[index % len(cores)]})
