"""What JAX itself reports of tracing and compiling: events, warnings, and its compilation caches."""

from __future__ import annotations

import logging
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax

from jaxmeter.harness.machine import jax_internals as internals
from jaxmeter.harness.machine.jax_internals import Internal
from jaxmeter.harness.machine.own_fault import OwnFaultError, describe_own_fault
from jaxmeter.harness.programs.older_jax import stop_listening

_INSIDE = (f"{Path(jax.__file__).parent}/", warnings.__file__, __file__)
"""Files between the code that JAX warns of and the function that keeps the warning."""


@dataclass(frozen=True)
class Warned:
    """A warning.

    Args:
      stack: `path:line` of each frame outside JAX, the innermost first.
    """

    text: str
    stack: tuple[str, ...]


@contextmanager
def keep_warnings(*, show: bool = True) -> Iterator[list[Warned]]:
    """Collect the warnings of the block, also those that were shown before.

    Args:
      show: Whether the warnings are given again at the end of the block, to whoever would have seen them.
    """
    kept: list[Warned] = []
    caught: list[tuple[Any, type[Warning], str, int]] = []

    def keep(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any, **__: Any) -> None:
        frames = ((frame.f_code.co_filename, line) for frame, line in traceback.walk_stack(None))
        stack = tuple(f"{file}:{line}" for file, line in frames if not file.startswith(_INSIDE))
        kept.append(Warned(str(message), stack))
        caught.append((message, category, filename, lineno))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = keep  # the end of this block restores it
        yield kept
    for each in caught if show else ():
        warnings.warn_explicit(*each)


TRACE, LOWER, COMPILE = internals.TRACED.name, internals.LOWERED.name, internals.COMPILED.name
_HIT, _MISS = internals.CACHE_HIT.name, internals.CACHE_MISS.name


@dataclass
class JaxEvents:
    """What happened: durations by event, in seconds, and answers of the persistent cache.

    Args:
      durations_s: Event name -> durations in the order of their ends; a nested function's trace is one of its own.
    """

    durations_s: dict[str, list[float]] = field(default_factory=dict)
    hits: int = 0
    misses: int = 0

    @property
    def traces(self) -> int:
        """Functions that were traced, as jax reports them; what is traced inside another may not count."""
        return len(self.durations_s.get(TRACE, ()))

    @property
    def requested(self) -> int:
        """Programs that were to be compiled: by XLA, or read from the persistent cache, which jax reports as well."""
        return len(self.durations_s.get(COMPILE, ()))

    @property
    def compiled(self) -> int:
        """Programs that XLA compiled."""
        return self.requested - self.hits


@cache
def find_silent_events() -> tuple[Internal, ...]:
    """Return which events of tracing, lowering and compiling JAX does not report by the names that are known here.

    A program that nobody needs is compiled once a process. Without these events a count of 0 says nothing.
    """
    with jax.disable_jit(False), watch_jax() as events:
        jax.jit(lambda x: x + 1).lower(0.0).compile()
    rows = (internals.TRACED, internals.LOWERED, internals.COMPILED)
    return tuple(row for row in rows if row.name not in events.durations_s)


def describe_silent_event(row: Internal) -> str:
    """Return a note on an event that JAX does not report."""
    return describe_own_fault(OwnFaultError(f"jax {version('jax')} reports no event {row.name}", row.unknown))


@contextmanager
def watch_jax() -> Iterator[JaxEvents]:
    """Counts what happens in this process until the end of the block."""
    seen = JaxEvents()

    def duration(event: str, duration_secs: float, **_: str | int) -> None:
        seen.durations_s.setdefault(event, []).append(duration_secs)

    def event(event: str, **_: str | int) -> None:
        seen.hits += event == _HIT
        seen.misses += event == _MISS

    jax.monitoring.register_event_duration_secs_listener(duration)
    jax.monitoring.register_event_listener(event)
    try:
        yield seen
    finally:
        stop_listening(duration=duration, event=event)


def explain_misses(call: Callable[[], Any]) -> list[str]:
    """Return JAX's own explanation of every program that `call` compiles, from empty caches, in their order.

    Functions inside a program miss the cache too; JAX explains them after the program that holds them. Only the
    program's own explanation is kept; it is empty where JAX has none, as for the operations of eager code.
    """
    programs: list[str] = []
    misses: list[str] = []
    listener = logging.Handler()
    listener.emit = lambda record: misses.append(record.getMessage())  # type: ignore[method-assign]

    def close(event: str, duration_secs: float, **_: str | int) -> None:
        if event == COMPILE:
            programs.append(next((line for line in misses if internals.CACHE_MISS_MESSAGE.name in line), ""))
            misses.clear()

    logger = logging.getLogger("jax")
    jax.clear_caches()
    logger.addHandler(listener)
    jax.monitoring.register_event_duration_secs_listener(close)
    try:
        with jax.explain_cache_misses(True):
            call()
    finally:
        stop_listening(duration=close)
        logger.removeHandler(listener)
    return programs


def use_cache(folder: str, *, default_thresholds: bool = False) -> None:
    """Has this process keep what it compiles in a folder, and take from it what is there.

    Args:
      default_thresholds: Whether only what JAX keeps by itself, else all.
    """
    jax.config.update("jax_enable_compilation_cache", True)
    jax.config.update("jax_compilation_cache_dir", folder)
    if default_thresholds:
        return
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


@contextmanager
def without_cache() -> Iterator[None]:
    """Compiles without any persistent cache meanwhile; that of the process, a user's own, is back afterwards."""
    enabled = bool(jax.config.values["jax_enable_compilation_cache"])
    _enable_cache(False)
    try:
        yield
    finally:
        _enable_cache(enabled)


def stop_using_cache() -> None:
    """Have this process compile without the persistent cache from here on."""
    if jax.config.values["jax_enable_compilation_cache"]:
        _enable_cache(False)


def _enable_cache(enabled: bool) -> None:
    jax.config.update("jax_enable_compilation_cache", enabled)
    internals.RESET_CACHE.load()()  # it decides only once whether there is one


def forget_compiled(*, persistent: bool) -> None:
    """Forgets what making the inputs compiled.

    One trivial program is compiled, so that the compiler's own start does not count for the first variant.

    Args:
      persistent: Whether to compile without the persistent cache from here on.
    """
    if persistent:
        stop_using_cache()
    jax.clear_caches()
    jax.jit(lambda: jax.numpy.zeros(()))().block_until_ready()
