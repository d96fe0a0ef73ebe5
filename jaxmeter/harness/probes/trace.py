"""A profiler capture of a few steps, kept where xprof and TensorBoard find it. Never the timed process."""

from __future__ import annotations

import platform as host_platform
import sys
from pathlib import Path

import jax

from jaxmeter.harness.probes.context import Context, Findings
from jaxmeter.harness.probes.look_at_each import look_at_each
from jaxmeter.harness.programs.modes import Prepared
from jaxmeter.harness.record import Outcome, Status, TraceDetails
from jaxmeter.harness.traces.privacy import make_capture_private

STEPS = 5
"""Enough to see a step repeat; captures of slow steps stay small."""


def look(variants: tuple[str, ...], context: Context) -> Findings:
    """Captures each."""
    return look_at_each("trace", capture, variants, context)


def capture(variant: str, prepared: Prepared, context: Context) -> Outcome:
    """Captures STEPS calls, each waited for inside its step annotation, so that a step's span holds its work."""
    prepared.wait(prepared.call(*prepared.args))
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    options.session_id = "capture"
    if context.folder is None:
        raise ValueError("a capture needs a folder")
    folder = context.folder.trace(variant)
    with jax.profiler.trace(folder, profiler_options=options):
        for step in range(STEPS):
            with jax.profiler.StepTraceAnnotation(variant, step_num=step):
                prepared.wait(prepared.call(*prepared.args))
    _forget_host(folder)
    captures = [path for path in folder.rglob("*.xplane.pb") if path.stat().st_size > 0]
    if not captures:
        return Outcome(status=Status.FAILED, reason="the profiler wrote no capture (*.xplane.pb), or an empty one")
    size = sum(path.stat().st_size for path in captures)
    plane = context.platform.trace_plane
    activity = None if plane is None else any(has_activity(path, plane) for path in captures)
    details = TraceDetails(device_activity=activity)
    return Outcome(status=Status.OK, values={"trace_file_bytes": (size,)}, details=details)


def has_activity(capture: Path, plane: str) -> bool:
    """Whether a capture (`*.xplane.pb`) holds an event on a plane whose name begins like this."""
    planes = jax.profiler.ProfileData.from_file(str(capture)).planes
    found = (one for one in planes if one.name.startswith(plane))
    return any(True for one in found for line in one.lines for _ in line.events)


def _forget_host(folder: Path) -> None:
    """Renames `<host>.xplane.pb` and its kin, and overwrites what they say of the machine: a run is shared.

    xprof takes any name before the first dot.
    """
    private = (str(Path.home()), str(Path.cwd()), sys.prefix, *sys.path)
    for path in list(folder.rglob(f"{host_platform.node()}.*")):
        renamed = path.rename(path.with_name(f"host{path.name.removeprefix(host_platform.node())}"))
        if renamed.stat().st_size > 0:
            make_capture_private(renamed, private)
