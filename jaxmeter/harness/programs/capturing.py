"""A profiler capture of a few annotated calls, after calls that the profiler itself slows down are discarded."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import jax

from jaxmeter.harness.machine import jax_internals as internals
from jaxmeter.harness.machine.own_fault import UnknownError
from jaxmeter.harness.traces.captures import SUFFIX
from jaxmeter.harness.traces.xplane import CaptureError

DISCARDED_CALLS, DISCARDED_S = 10, 0.005
"""The discarded calls end when the first of these limits is reached. The first calls of a capture are slow: calls of
10 us take three to five times as long. A warm-up before the capture does not help (two cores, jax 0.10.2)."""

KEPT_CALLS, KEPT_S = 50, 0.02
"""The kept calls end when the first of these limits is reached. From 40 calls on, the wall times of a capture are close
to the timed ones."""

FEWEST_CALLS = 3
"""Fewest calls for a median, and for detecting a call that differs from the others."""

LARGEST_BYTES = 2 * 10**6
"""Largest capture: a scan of 500 steps has 5.9 MB for 50 calls, and a run keeps a capture for each variant."""

SPARE = 0.8
"""A second capture aims at this part of LARGEST_BYTES, since each capture also holds the programs."""

PYTHON_TRACER, HOST_TRACER = 0, 2
"""Levels of the tracers: Python's functions would slow down what is captured; 2 shows dispatch and waiting."""


class ProfilerBusyError(RuntimeError):
    """A profiler session is running already: JAX has one at a time."""


@dataclass(frozen=True)
class Captured:
    """A capture on disk.

    Args:
      path: Of the `*.xplane.pb`.
      steps: Annotated calls that it holds.
      discarded: Calls before them, without an annotation.
    """

    path: Path
    steps: int
    discarded: int


def capture_steps(
    call: Callable[[], None],
    folder: Path,
    name: str,
    *,
    session_id: str = "capture",
    before: Callable[[], object] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Captured:
    """Capture calls, each in a step annotation. The first call, which compiles, is made before the capture.

    A capture that is larger than LARGEST_BYTES is taken again with fewer steps, at most twice.

    Args:
      call: Calls once and waits for the result.
      folder: The log folder; the capture lies in `plugins/profile/SESSION_ID` below it.
      name: Of the annotated steps.
      before: Called before each call, outside its annotation.
    Raises:
      ProfilerBusyError: A session is running already.
      CaptureError: The profiler wrote nothing.
      Whatever `call` raises; the session has ended then.
    """
    once = _Once(call, before or _nothing)
    once()
    session = folder / "plugins" / "profile" / session_id
    most = KEPT_CALLS
    while True:
        captured = _capture(once, folder, session, name, most, clock)
        size = captured.path.stat().st_size
        if size <= LARGEST_BYTES or captured.steps <= FEWEST_CALLS:
            return captured
        # The second try is in proportion to the size; where the programs alone are large, the third one is the fewest.
        fewer = max(FEWEST_CALLS, int(captured.steps * SPARE * LARGEST_BYTES / size))
        most = fewer if most == KEPT_CALLS else FEWEST_CALLS


@dataclass(frozen=True)
class _Once:
    """One call, and what comes before it."""

    call: Callable[[], None]
    before: Callable[[], object]

    def __call__(self) -> None:
        self.before()
        self.call()


def _nothing() -> None:
    """Prepare nothing."""


def _capture(once: _Once, folder: Path, session: Path, name: str, most: int, clock: Callable[[], float]) -> Captured:
    shutil.rmtree(session, ignore_errors=True)
    others = set(session.parent.glob("*"))
    discarded = steps = 0
    with _profile(folder, session.name):
        begun = clock()
        while discarded < min(most, DISCARDED_CALLS) and (not discarded or clock() - begun < DISCARDED_S):
            once()
            discarded += 1
        begun = clock()
        while steps < most and (steps < FEWEST_CALLS or clock() - begun < KEPT_S):
            once.before()
            with jax.profiler.StepTraceAnnotation(name, step_num=steps):
                once.call()
            steps += 1
    for named_by_date in set(session.parent.glob("*")) - others - {session}:  # jax before 0.8.2 takes no session_id
        named_by_date.rename(session)
    paths = sorted(session.glob(f"*{SUFFIX}"))
    if not paths:
        raise CaptureError(f"the profiler wrote no capture (*{SUFFIX})")
    return Captured(paths[0], steps, discarded)


@contextmanager
def _profile(folder: Path, session_id: str) -> Iterator[None]:
    """Capture what runs inside.

    Raises:
      ProfilerBusyError: A session is running already.
    """
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = PYTHON_TRACER
    options.host_tracer_level = HOST_TRACER
    options.session_id = session_id
    try:
        jax.profiler.start_trace(folder, profiler_options=options)
    except RuntimeError as error:
        _raise_if_busy(error)
        raise
    try:
        yield
    finally:
        _stop()


def _stop() -> None:
    try:
        jax.profiler.stop_trace()
    except RuntimeError as error:
        # A session that jax.profiler did not begin, such as that of a profiler server, is noticed only here. Without
        # this, jax would take the failed session for one that is running, for as long as the process lives.
        with suppress(UnknownError, AttributeError):
            internals.PROFILER_STATE.load().reset()
        _raise_if_busy(error)
        raise


def _raise_if_busy(error: RuntimeError) -> None:
    if "already been started" in str(error) or "ALREADY_EXISTS" in str(error):
        raise ProfilerBusyError(
            "a profiler session is running in this process, and JAX has one at a time; end it first "
            "(jax.profiler.stop_trace)"
        ) from error
