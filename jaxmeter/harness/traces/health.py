"""Whether a capture can be relied on: what is wrong with it, and what helps. An unhealthy one gives no numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy

from jaxmeter.harness.record.trace_summary import Finding, Problem
from jaxmeter.harness.traces.analysis import ANNOTATIONS, MODULE_RUNS, Analysis
from jaxmeter.harness.traces.programs import TRANSFER
from jaxmeter.harness.traces.timeline import GPU, TPU, Timeline

LARGEST_SKEW_S = 1e-4
"""Between the host's clock and a device's, from which on delays between the two say nothing."""

HIDDEN_KERNELS = 0.01
"""Share of the device's time in kernels without an operation of a program, from which on they are missed."""

JSON_EVENTS = 1_000_000
"""Events from which on `*.trace.json.gz` is cut. Source: jax issue 21295."""

PYTHON_EVENT_PS = 500_000
"""What recording one call of a Python function takes. Source: 30,000 a step made a step of 3.5 ms one of 18.7."""

MOST_PYTHON = 0.1
"""Share of the steps' wall time that recording Python's calls may take before a reader is warned."""

MOST_NAMED = 5
"""Programs that a finding names."""

FEWEST_STEPS, LONG_STEP, MOST_OF_ONE = 5, 5.0, 0.25
"""From how many steps on one is said to be long: over so many medians, and over this share of the time of all."""

PS_PER_S = 1e12

_NOT_PERMITTED = re.compile(r"(?i)insufficient privilege|CUPTI_ERROR_INSUFFICIENT_PRIVILEGES|not permitted")
_NO_CUPTI = re.compile(r"(?i)failed to load libcupti|cupti.*(could not|failed|unavailable)")
_DROPPED = re.compile(r"(?i)dropped")


def find_problems(
    analysis: Analysis,
    *,
    modules: frozenset[str] = frozenset(),
    has_device: bool | None = None,
    steps: int | None = None,
) -> Iterator[Finding]:
    """Yield what is wrong with a capture.

    Args:
      modules: Names of programs of which one ought to have run; empty where that is not known.
      has_device: Whether it ought to hold a device of its own (a GPU, a TPU); None where that is not known.
      steps: How many annotated steps it ought to hold; None where that is not known.
    """
    timeline = analysis.timeline
    yield from _find_lost(timeline)
    if not len(timeline.operations):
        yield _explain_nothing(timeline, has_device)
        return
    if has_device and timeline.layout not in (GPU, TPU):
        yield Finding(
            problem=Problem.NO_DEVICE,
            text="it contains operations of the host only, and no plane of a device",
            remedy="capture in the process that runs the program, and check that CUPTI or libtpu is installed",
        )
    if not analysis.operations:
        yield Finding(
            problem=Problem.NO_OPERATIONS,
            text="none of its operations begins in a step",
            remedy="wait for the results inside the annotated code",
        )
    ran = {operation.kind.module for operation in analysis.operations if operation.kind.module}
    if modules and ran and not modules & ran:
        yield Finding(
            problem=Problem.FOREIGN_PROGRAM,
            text=f"other programs ran than {', '.join(sorted(modules))}: {', '.join(sorted(ran)[:MOST_NAMED])}",
            remedy="capture the program that is measured",
        )
    yield from _find_missing_steps(analysis, steps)
    yield from _find_clocks(analysis)
    yield from _find_hidden(analysis)
    yield from _find_long_step(analysis)
    cut = sum(not run.is_finished for run in timeline.runs)
    if analysis.steps.source == MODULE_RUNS and 0 < cut < len(timeline.runs):
        yield Finding(
            problem=Problem.UNFINISHED,
            text=f"{cut} of {len(timeline.runs)} runs of programs are not finished when the capture ends",
            remedy="wait for the results before the capture ends",
            is_fatal=False,
        )
    wall, calls = float(analysis.wall.sum()), _count_python_calls(analysis)
    if calls * PYTHON_EVENT_PS > MOST_PYTHON * wall:
        yield Finding(
            problem=Problem.PYTHON_TRACER,
            text=f"the Python tracer recorded {calls:,} calls in the steps, and the host's parts are much too long",
            remedy="capture with ProfileOptions.python_tracer_level = 0",
            is_fatal=False,
        )
    if timeline.latest is not None:
        read_s, last_s = ((moment - timeline.first) / PS_PER_S for moment in (timeline.end, timeline.latest))
        yield Finding(
            problem=Problem.READ_IN_PART,
            text=f"the first {read_s:.3g} of {last_s:.3g} s are read, as all of it takes too much memory",
            remedy="capture fewer steps",
            is_fatal=False,
        )
    elif timeline.events >= JSON_EVENTS:
        yield Finding(
            problem=Problem.CUT_JSON,
            text=f"it holds {timeline.events:,} events; its *.trace.json.gz ends after {JSON_EVENTS:,}",
            remedy="the numbers here are of the whole capture; set TF_PROFILER_TRACE_VIEWER_MAX_EVENTS for the JSON",
            is_fatal=False,
        )


def _count_python_calls(analysis: Analysis) -> int:
    """Calls of Python functions in the steps, by the thread that annotated them, or by all where none did."""
    total = 0
    for thread, calls in analysis.timeline.python_calls.items():
        begun = numpy.sort(calls)
        own = [step for step in analysis.steps.steps if step.thread in (None, thread)]
        total += sum(int(numpy.searchsorted(begun, step.end) - numpy.searchsorted(begun, step.start)) for step in own)
    return total


def _find_long_step(analysis: Analysis) -> Iterator[Finding]:
    """One step that is much longer than the others has most of the shares."""
    wall = analysis.wall
    if len(wall) < FEWEST_STEPS:
        return
    longest, total = int(wall.max()), int(wall.sum())
    if longest > LONG_STEP * float(numpy.median(wall)) and longest > MOST_OF_ONE * total:
        yield Finding(
            problem=Problem.LONG_STEP,
            text=f"one of {len(wall)} steps takes {100 * longest / total:.0f} % of their time, and so of the shares",
            remedy="capture again; if it is part of every run, such as a checkpoint, the shares are right in all",
            is_fatal=False,
        )


def _find_lost(timeline: Timeline) -> Iterator[Finding]:
    for message in timeline.warnings:
        if _DROPPED.search(message):
            yield Finding(
                problem=Problem.DROPPED_EVENTS,
                text=f"the profiler lost events: {message[:200]}",
                remedy="capture fewer steps, or raise gpu_max_activity_api_events",
            )
    if not timeline.whole:
        yield Finding(
            problem=Problem.UNFINISHED,
            text="the profiler's last record is missing, so its end may be cut off",
            remedy="capture again, and copy the file whole",
            is_fatal=False,
        )


def _explain_nothing(timeline: Timeline, has_device: bool | None) -> Finding:
    """Say why a capture has no operation of any device."""
    messages = " ".join(timeline.errors)
    if _NOT_PERMITTED.search(messages):
        return Finding(
            problem=Problem.NOT_PERMITTED,
            text="CUPTI is not permitted to trace the GPU",
            remedy="run with CAP_SYS_ADMIN, or load the driver with NVreg_RestrictProfilingToAdminUsers=0",
        )
    if _NO_CUPTI.search(messages):
        return Finding(
            problem=Problem.NOT_PERMITTED,
            text="CUPTI could not be loaded",
            remedy="install jax with its cuda extra, which brings libcupti",
        )
    if timeline.errors:
        return Finding(problem=Problem.NO_OPERATIONS, text=f"the profiler reports: {timeline.errors[0][:200]}")
    if has_device:
        return Finding(
            problem=Problem.NO_DEVICE,
            text="it has no plane of the device",
            remedy="capture in the process that runs the program, while it runs",
        )
    return Finding(
        problem=Problem.NO_OPERATIONS,
        text="no operation of any device ran while it was taken",
        remedy="capture while the program runs, wait for its results inside, and leave host_tracer_level at 1 or more",
    )


def _find_missing_steps(analysis: Analysis, expected: int | None) -> Iterator[Finding]:
    steps = analysis.steps
    if steps.source != ANNOTATIONS:
        layout = analysis.timeline.layout
        # By a device's own clock steps are runs, whatever was annotated.
        if expected is not None and not (layout is not None and layout.has_device_clock):
            yield Finding(problem=Problem.MISSING_STEPS, text=f"it has none of {expected} annotated steps")
        return
    of_steps = {(step.name, step.thread) for step in steps.steps}
    annotated = [step for step in analysis.timeline.annotated if (step.name, step.thread) in of_steps]
    numbers = [step.number for step in annotated if step.number is not None]
    gaps = max(numbers) - min(numbers) + 1 - len(set(numbers)) if numbers else 0
    count = len(annotated)
    if (expected is not None and count != expected) or (expected is None and 0 < gaps < count):
        yield Finding(
            problem=Problem.MISSING_STEPS,
            text=f"it has {count} of {expected if expected is not None else count + gaps} steps",
            remedy="capture fewer steps" if expected is not None else "unless the code skips some, capture fewer steps",
            is_fatal=expected is not None,
        )
    elif expected is not None and len(set(_count_operations(analysis))) > 1:
        yield Finding(
            problem=Problem.UNEQUAL_STEPS,
            text="its steps have unequal numbers of operations",
            remedy="the program may take other branches from step to step; else events were lost",
            is_fatal=False,
        )


def _count_operations(analysis: Analysis) -> list[int]:
    starts = numpy.sort(analysis.timeline.operations.starts)
    return [
        int(numpy.searchsorted(starts, step.end) - numpy.searchsorted(starts, step.start))
        for step in analysis.steps.steps
    ]


def _find_clocks(analysis: Analysis) -> Iterator[Finding]:
    timeline = analysis.timeline
    if timeline.before_launch:
        yield Finding(
            problem=Problem.CLOCKS_DISAGREE,
            text=f"{timeline.before_launch} of {len(timeline.launch_delays)} kernels start before their kernel launch",
            remedy="launch delays are left out; capture again",
            is_fatal=False,
        )
    if timeline.skew > LARGEST_SKEW_S * PS_PER_S:
        yield Finding(
            problem=Problem.CLOCKS_DISAGREE,
            text=f"host and device clocks drift apart by {timeline.skew / PS_PER_S * 1e3:.3g} ms",
            remedy="device times are by the device's own clock, and are not affected",
            is_fatal=False,
        )
    shared = [step.device is None for step in analysis.steps.steps]
    for device in analysis.devices:
        if all(shared) and bool((device.busy > analysis.wall).any()):
            yield Finding(
                problem=Problem.CLOCKS_DISAGREE,
                text=f"{device.name} is busy for longer than its step lasts",
                remedy="capture again",
            )


def _find_hidden(analysis: Analysis) -> Iterator[Finding]:
    """Kernels of command buffers (CUDA graphs) do not say which operation they belong to."""
    if analysis.timeline.layout is not GPU:
        return
    nameless = [operation for operation in analysis.operations if not operation.kind.module]
    hidden = sum(operation.share_ps for operation in nameless if operation.about.category != TRANSFER)
    busy = sum(float(device.busy.sum()) for device in analysis.devices)
    if hidden > HIDDEN_KERNELS * busy:
        yield Finding(
            problem=Problem.COMMAND_BUFFERS,
            text=f"{100 * hidden / busy:.0f} % of the device's time is in kernels that name no operation",
            remedy="capture once more with XLA_FLAGS=--xla_gpu_enable_command_buffer= for the operations",
            is_fatal=False,
        )
