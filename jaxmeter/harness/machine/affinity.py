"""Which cores the threads of this process run on."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from jaxmeter.harness.machine.platforms import Platform

LOCK_STEP_CORES = 1
"""Cores are not alike: where each of two processes runs on cores of its own, their ratio is that of the cores too."""

_TASKS = Path("/proc/self/task")


def can_choose_cores() -> bool:
    """Whether the system lets a process choose; macOS does not."""
    return hasattr(os, "sched_setaffinity") and _TASKS.is_dir()


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
    return [int(task.name) for task in _TASKS.iterdir()]
