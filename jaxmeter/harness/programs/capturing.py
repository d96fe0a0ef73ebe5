"""Captures some calls with JAX's profiler: enough of them for a median, few enough for a small file."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import jax

DISCARDED_STEPS, DISCARDED_S = 10, 0.005
"""Steps that run traced before those that are kept, until either is reached: the first steps of a capture are slow, up
to 5 times."""

MOST_STEPS, LONGEST_S, FEWEST_STEPS = 50, 0.020, 3
"""Steps that are kept, until either of the first two is reached, but at least the last."""

LARGEST_BYTES = 2 * 10**6
"""Of a capture; a larger one is taken again with fewer steps. Loops of many short operations make large ones."""

DISCARDED = "discarded"
"""Name of the annotation around the steps that are not kept. It has no number, so it is no step."""


class ProfilerBusyError(RuntimeError):
    """A profiler session is running in this process already; JAX has one at a time."""


@dataclass(frozen=True)
class Captured:
    """What was captured.

    Args:
      path: The capture, `*.xplane.pb`; None where the profiler wrote none.
      steps: Calls that it holds as steps.
      discarded: Calls before them.
    """

    path: Path | None
    steps: int
    discarded: int


def capture_steps(call: Callable[[], None], folder: Path, name: str, *, session_id: str = "capture") -> Captured:
    """Capture calls, each as a step, into a folder of its own.

    Args:
      call: Calls the program once and waits for its results. It has been called before, so nothing is compiled.
      folder: Where the profiler's `plugins/profile/<session_id>` will be.
      name: Of the step annotations.
    Raises:
      ProfilerBusyError: A profiler session is running already.
    """
    captured = _capture(call, folder, name, session_id, MOST_STEPS)
    while captured.path is not None and captured.steps > FEWEST_STEPS:
        size = captured.path.stat().st_size
        if size <= LARGEST_BYTES:
            break
        fewer = max(FEWEST_STEPS, min(captured.steps - 1, int(captured.steps * LARGEST_BYTES / size)))
        shutil.rmtree(folder / "plugins" / "profile" / session_id, ignore_errors=True)
        captured = _capture(call, folder, name, session_id, fewer)
    return captured


def _capture(call: Callable[[], None], folder: Path, name: str, session_id: str, most: int) -> Captured:
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    options.session_id = session_id
    try:
        jax.profiler.start_trace(str(folder), profiler_options=options)
    except RuntimeError as error:
        raise ProfilerBusyError(f"a profiler session is running already in this process ({error})") from None
    try:
        with jax.profiler.TraceAnnotation(DISCARDED):
            discarded = _repeat(lambda step: call(), DISCARDED_STEPS, DISCARDED_S, fewest=1)

        def step(number: int) -> None:
            with jax.profiler.StepTraceAnnotation(name, step_num=number):
                call()

        steps = _repeat(step, most, LONGEST_S, fewest=FEWEST_STEPS)
    finally:
        jax.profiler.stop_trace()
    found = sorted((folder / "plugins" / "profile" / session_id).glob("*.xplane.pb"))
    return Captured(found[0] if found else None, steps, discarded)


def _repeat(step: Callable[[int], None], most: int, longest_s: float, *, fewest: int) -> int:
    """Call until there are enough calls, or enough time has passed; return how many there were."""
    start = time.perf_counter()
    count = 0
    while count < fewest or (count < most and time.perf_counter() - start < longest_s):
        step(count)
        count += 1
    return count
