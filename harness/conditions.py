"""How undisturbed a stretch of time was: what the kernel knows about this process waiting for a core."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_STEAL_FIELD = 8
_NANOSECONDS = 1e-9


@dataclass(frozen=True)
class Reading:
    """Counters since the process (or machine) started; a difference of two describes a stretch. Seconds."""

    wait_s: float | None
    cpu_s: float
    steal_s: float | None
    involuntary_switches: int


ReadConditions = Callable[[], Reading]


def read_conditions() -> Reading:
    """Reads this process's counters; about 0.1 ms, never inside a timed span."""
    return Reading(
        wait_s=_run_queue_wait(),
        cpu_s=time.process_time(),
        steal_s=_steal(),
        involuntary_switches=resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw,
    )


def _run_queue_wait() -> float | None:
    """Time all threads of this process were runnable but not running (second field of schedstat)."""
    waited = 0
    try:
        threads = [folder.name for folder in Path("/proc/self/task").iterdir()]
    except OSError:
        return None
    for thread in threads:
        try:
            waited += int(Path(f"/proc/self/task/{thread}/schedstat").read_bytes().split()[1])
        except FileNotFoundError:  # the thread ended, or the kernel keeps no such counter
            if thread == str(os.getpid()):
                return None
    return waited * _NANOSECONDS


def _steal() -> float | None:
    """Time the hypervisor gave to other guests, over all cores (/proc/stat)."""
    try:
        with Path("/proc/stat").open(encoding="ascii") as file:
            fields = file.readline().split()
        return int(fields[_STEAL_FIELD]) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError):
        return None
