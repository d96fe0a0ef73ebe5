"""Interference during a period, from the kernel's counters of how long this process waited for a core."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from jaxmeter.harness.machine.environment import list_limited_groups

_RAN_FIELDS, _STEAL_FIELD = (1, 2, 3, 6, 7), 8
"""Of /proc/stat: user, nice, system, irq, softirq, and steal; man 5 proc."""

_NANOSECONDS = 1e-9
_TASKS = Path("/proc/self/task")
_THROTTLED = {b"throttled_usec": 1e-6, b"throttled_time": 1e-9}
"""In cpu.stat, with its unit in seconds: of cgroup v2 and v1. Documentation/admin-guide/cgroup-v2.rst, and
scheduler/sched-bwc.rst."""


@dataclass(frozen=True)
class CounterReading:
    """Counters since the process (or machine) started, in seconds; a difference of two describes a period.

    Args:
      wait_s: Time that the process's threads were runnable but had no core; None where the system does not report it.
      cpu_s: Processor time of the process, without that of the readings so far.
      steal_s: Time that the hypervisor gave to other guests, all cores; None where the system does not report it.
      involuntary_switches: Context switches forced on the process.
      throttled_s: Time that its control groups could not run because a quota was used up; None without a quota.
      machine_s: Processor time of everything on the machine; None where the system does not report it.
      readings_s: Processor time of the readings so far, which `cpu_s` leaves out.
    """

    wait_s: float | None
    cpu_s: float
    steal_s: float | None
    involuntary_switches: int
    throttled_s: float | None = None
    machine_s: float | None = None
    readings_s: float = 0.0

    def since(self, earlier: CounterReading, name: str) -> float | None:
        """Return by how much a counter has grown; None if one of the two readings lacks it."""
        first, last = getattr(earlier, name), getattr(self, name)
        # A thread that ended took its counter with it.
        return None if first is None or last is None else max(0.0, last - first)


ReadInterference = Callable[[], CounterReading]


class Interference:
    """Reads this process's counters when called: about 40 us, as the files are kept open; never in a timed span."""

    def __init__(self, root: Path = Path("/")) -> None:
        """Open the files of the current threads and control groups.

        Args:
          root: Folder in which control groups are searched.
        """
        self._schedstat: dict[str, int] = {}
        self._spent_s = 0.0
        self._stat = _open("/proc/stat")
        opened = (_open(str(group / "cpu.stat")) for group in list_limited_groups(root))
        self._limited = [handle for handle in opened if handle is not None]

    def close(self) -> None:
        """Close the files."""
        for handle in (*self._schedstat.values(), *self._limited, *([] if self._stat is None else [self._stat])):
            os.close(handle)

    def __call__(self) -> CounterReading:
        """Return the current counters."""
        # First, and without the time of reading every thread: that is no time of the code before or after.
        cpu_s = time.process_time()
        machine_s, steal_s = self._read_machine()
        reading = CounterReading(
            wait_s=self._run_queue_wait(),
            cpu_s=cpu_s - self._spent_s,
            steal_s=steal_s,
            involuntary_switches=resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw,
            throttled_s=sum(map(_throttled, self._limited)) if self._limited else None,
            machine_s=machine_s,
            readings_s=self._spent_s,
        )
        self._spent_s += time.process_time() - cpu_s
        return reading

    def _run_queue_wait(self) -> float | None:
        """Return the second field of schedstat, summed over the threads."""
        try:
            threads = os.listdir(_TASKS)  # noqa: PTH208  iterdir takes twice as long
        except OSError:
            return None
        waited = 0
        for thread in threads:
            if thread not in self._schedstat and (handle := _open(f"{_TASKS}/{thread}/schedstat")) is not None:
                self._schedstat[thread] = handle
            if thread in self._schedstat:
                waited += self._thread_wait(thread)
        return waited * _NANOSECONDS if self._schedstat else None

    def _thread_wait(self, thread: str) -> int:
        try:
            return int(os.pread(self._schedstat[thread], 100, 0).split()[1])
        except (ProcessLookupError, IndexError):  # it ended since the folder was listed
            os.close(self._schedstat.pop(thread))
            return 0

    def _read_machine(self) -> tuple[float | None, float | None]:
        """Return the time that all cores ran, and the time that the hypervisor took from them."""
        if self._stat is None:
            return None, None
        fields = os.pread(self._stat, 200, 0).partition(b"\n")[0].split()
        if len(fields) <= _STEAL_FIELD:
            return None, None
        ticks_per_s = os.sysconf("SC_CLK_TCK")
        ran = sum(int(fields[place]) for place in _RAN_FIELDS)
        return ran / ticks_per_s, int(fields[_STEAL_FIELD]) / ticks_per_s


def _throttled(handle: int) -> float:
    """Return the throttled time in a group's cpu.stat; 0 if there is none."""
    lines = (line.split() for line in os.pread(handle, 1000, 0).splitlines())
    return sum(int(line[1]) * _THROTTLED[line[0]] for line in lines if len(line) == 2 and line[0] in _THROTTLED)


def _open(path: str) -> int | None:
    try:
        return os.open(path, os.O_RDONLY)
    except OSError:
        return None
