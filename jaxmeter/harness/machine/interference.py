"""Settings of a process that change what is timed, and interference from other programs. No jax."""

from __future__ import annotations

import os
import random
import resource
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from jaxmeter.harness.machine.environment import list_limited_groups
from jaxmeter.harness.machine.jax_internals import find_jax_release
from jaxmeter.harness.machine.platforms import Platform


@dataclass(frozen=True)
class Setting:
    """An option of `jax.config`, or a variable of the process.

    Args:
      usual: Values with which nothing is changed; any other counts.
      effect: What it does to a timed call, to follow its name and value.
      off_before: The release before which it is off by default, which is usual there.
    """

    name: str
    usual: tuple[object, ...]
    effect: str
    off_before: tuple[int, ...] = ()


_OFF = (False, None, "", 0, "0")

OPTIONS = (
    Setting("jax_debug_nans", _OFF, "every result is checked for NaN before a call returns"),
    Setting("jax_debug_infs", _OFF, "every result is checked for infinities before a call returns"),
    Setting("jax_disable_jit", _OFF, "jitted functions run operation by operation"),
    Setting("jax_check_tracer_leaks", _OFF, "every trace is searched for leaked tracers, and none is kept"),
    Setting("jax_enable_checks", _OFF, "JAX checks its own invariants in every trace and call"),
    Setting("jax_debug_key_reuse", _OFF, "every program is searched for random keys that are used twice"),
    Setting("jax_log_compiles", _OFF, "every trace and compilation is logged"),
    Setting("jax_explain_cache_misses", _OFF, "every miss of a cache is explained and logged"),
    Setting("jax_log_checkpoint_residuals", _OFF, "what a checkpoint saves is logged in every trace"),
    Setting("jax_debug_log_modules", _OFF, "modules of JAX log what they do"),
    Setting(
        "jax_logging_level",
        ("NOTSET", "INFO", "WARNING", "ERROR", "CRITICAL", None, ""),
        "JAX logs every step that it takes",
    ),
    Setting("jax_dump_ir_to", _OFF, "the text of every program is written to a file while it is compiled"),
    Setting(
        "jax_cpu_enable_async_dispatch",
        (True, None),
        "a call on the CPU returns only when its result is ready",
        off_before=(0, 4, 32),
    ),
    Setting("jax_disable_most_optimizations", _OFF, "XLA leaves out most of its optimisations"),
    Setting("jax_enable_pgle", _OFF, "the first calls are profiled, and the program is then compiled again"),
    Setting("jax_pallas_enable_debug_checks", _OFF, "kernels of Pallas check themselves"),
    Setting("jax_pallas_poison_buffers", _OFF, "buffers of Pallas are filled before every call"),
    Setting("jax_error_checking_behavior_nan", ("ignore", None), "results are checked for NaN"),
    Setting("jax_error_checking_behavior_divide", ("ignore", None), "divisions are checked"),
    Setting("jax_error_checking_behavior_oob", ("ignore", None), "indices are checked"),
    Setting("jax_send_traceback_to_runtime", ("off", None), "every call sends Python's traceback to the runtime"),
)
"""Of `jax.config`, with JAX's defaults; the reference is its documentation of configuration options."""

VARIABLES = (
    Setting("CUDA_LAUNCH_BLOCKING", _OFF, "every kernel of a GPU is waited for before the next is launched"),
    Setting("PYTHONDEVMODE", ("",), "Python checks its memory and warns of more"),
    Setting("PYTHONMALLOC", ("", "default", "malloc", "pymalloc", "mimalloc"), "Python checks its memory"),
    Setting("PYTHONTRACEMALLOC", ("", "0"), "Python records where each piece of memory was taken"),
)
"""Of the process, which JAX does not read. JAX's own variables count by the options that they set."""


def find_settings(options: Mapping[str, Any], variables: Mapping[str, str]) -> dict[str, str]:
    """Find settings that change what is timed.

    Args:
      options: Of `jax.config.values`, or those that a case sets.
      variables: Of the process's environment.
    Returns:
      Name -> a sentence with its value, the variable that sets it if there is one, and its effect.
    """
    settings = {}
    for setting in OPTIONS:
        value = _plain(options.get(setting.name))
        variable = setting.name.upper()
        is_off_by_default = variable not in variables and find_jax_release() < setting.off_before
        if setting.name in options and value not in setting.usual and not (is_off_by_default and value in _OFF):
            by = f" (by the variable {variable})" if variable in variables else ""
            settings[setting.name] = f"{setting.name} is {value!r}{by}: {setting.effect}"
    for setting in VARIABLES:
        given = variables.get(setting.name)
        if given is not None and given not in setting.usual:
            settings[setting.name] = f"{setting.name} is {given!r}: {setting.effect}"
    return settings


def describe_settings(options: Mapping[str, Any], variables: Mapping[str, str]) -> tuple[str, ...]:
    """Describe settings that change what is timed, a sentence each; none where all are as usual."""
    return tuple(find_settings(options, variables).values())


def refuse_settings(options: Mapping[str, Any], variables: Mapping[str, str]) -> str | None:
    """Describe why a run is not begun with these settings, and what to do; None where all are as usual."""
    settings = find_settings(options, variables)
    if not settings:
        return None
    config = {name: _plain(options[name]) for name in settings if name in options}
    declare = f"; to measure with it, declare it: needs=Needs(config={config!r})" if config else ""
    return f"what is timed would not be the program: {'; '.join(settings.values())}. Leave out the setting{declare}"


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


LOCK_STEP_CORES = 1
"""Cores are not alike: where each of two processes runs on cores of its own, their ratio is that of the cores too."""

TASKS = Path("/proc/self/task")


def can_choose_cores() -> bool:
    """Whether the system lets a process choose; macOS does not."""
    return hasattr(os, "sched_setaffinity") and TASKS.is_dir()


def has_several_cores() -> bool:
    """Whether this process may run on several cores, and can choose among them."""
    return can_choose_cores() and len(os.sched_getaffinity(0)) > 1


def find_lock_step_cores(platform: Platform, wanted: int | None = None) -> int | None:
    """Return on how many cores two environments in lock-step run; None where on all that are allowed.

    Args:
      wanted: The number that was asked for; by default LOCK_STEP_CORES on a CPU, and all elsewhere.
    """
    if not can_choose_cores():
        return None
    return wanted or (LOCK_STEP_CORES if platform.is_host else None)


def keep_on_cores(count: int, index: int) -> None:
    """Has every thread of this process run on so many of its cores; where the system cannot do that, on any.

    Args:
      index: Which of them: those that follow the ones of the index before, counted around.
    """
    if not can_choose_cores():
        return
    allowed = sorted(os.sched_getaffinity(0))
    chosen = {allowed[(index * count + number) % len(allowed)] for number in range(count)}
    for thread in _list_threads():
        with suppress(ProcessLookupError):  # it has ended
            os.sched_setaffinity(thread, chosen)


@contextmanager
def on_drawn_cores(draws: random.Random) -> Iterator[None]:
    """Keeps each thread of this process on a core drawn for it, and lets all go where they may afterwards.

    A thread that wakes up meanwhile stays there until the system moves it; one that sleeps is not moved.
    """
    allowed, before = os.sched_getaffinity(0), dict[int, set[int]]()
    try:
        for thread in _list_threads():
            with suppress(ProcessLookupError):  # it has ended
                before[thread] = os.sched_getaffinity(thread)
                os.sched_setaffinity(thread, {draws.choice(sorted(before[thread]))})
        yield
    finally:
        for thread in _list_threads():
            with suppress(ProcessLookupError):
                os.sched_setaffinity(thread, before.get(thread, allowed))


def _list_threads() -> list[int]:
    return [int(task.name) for task in TASKS.iterdir()]


_RAN_FIELDS, _STEAL_FIELD = (1, 2, 3, 6, 7), 8
"""Of /proc/stat: user, nice, system, irq, softirq, and steal; man 5 proc."""

_NANOSECONDS = 1e-9
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
            threads = os.listdir(TASKS)  # noqa: PTH208  iterdir takes twice as long
        except OSError:
            return None
        waited = 0
        for thread in threads:
            if thread not in self._schedstat and (handle := _open(f"{TASKS}/{thread}/schedstat")) is not None:
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
