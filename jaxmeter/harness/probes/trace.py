"""A profiler capture of some steps, kept where xprof and TensorBoard find it, and read. Never the timed process."""

from __future__ import annotations

import platform as host_platform
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from jaxmeter.harness.machine.jax_internals import find_jax_release
from jaxmeter.harness.probes.context import Context, Findings, probe_each
from jaxmeter.harness.programs.capturing import ProfilerBusyError, capture_steps
from jaxmeter.harness.programs.modes import Prepared
from jaxmeter.harness.record import Outcome, Param, Status, TraceDetails
from jaxmeter.harness.record.trace_summary import TraceSummary
from jaxmeter.harness.traces.captures import make_capture_private
from jaxmeter.harness.traces.host_operations import is_hidden, name_operations
from jaxmeter.harness.traces.summary import shorten_summary, summarise_capture
from jaxmeter.harness.traces.xplane import CaptureError

CAPTURES = (0, 7, 2)
"""The oldest release of jax whose captures name operations on a CPU."""

WITHOUT_COMMAND_BUFFERS: dict[str, Param] = {"xla_gpu_enable_command_buffer": ""}
"""With this option XLA starts each kernel by itself, and a capture names the operation of each kernel. Such a program
starts more slowly, so its capture gives no times of steps."""


def probe_variants(variants: tuple[str, ...], context: Context) -> Findings:
    """Capture each variant."""
    return probe_each("trace", capture, variants, context)


def capture(variant: str, prepared: Prepared, context: Context) -> Outcome:
    """Capture calls, each waited for inside its step annotation, so that a step's span contains its work."""
    if context.folder is None:
        raise ValueError("a capture needs a folder")
    if find_jax_release() < CAPTURES:
        return Outcome(status=Status.UNSUPPORTED, reason="profiler captures of jax before 0.7.2 do not name operations")
    folder = context.folder.trace(variant)

    def call_without_command_buffers() -> Callable[[], None]:
        again = context.prepare_with(variant, WITHOUT_COMMAND_BUFFERS)
        again.reset()
        return partial(_call_and_wait, again)

    return capture_and_read(
        partial(_call_and_wait, prepared),
        variant,
        folder,
        texts=[path.read_text("utf-8", "replace") for path in context.folder.artifacts("hlo", variant)],
        has_device=context.platform.trace_plane is not None,
        without_command_buffers=None if prepared.stages is None else call_without_command_buffers,
    )


def _call_and_wait(prepared: Prepared) -> None:
    prepared.call_and_wait()


def capture_and_read(
    call: Callable[[], None],
    variant: str,
    folder: Path,
    *,
    texts: Sequence[str] = (),
    has_device: bool,
    without_command_buffers: Callable[[], Callable[[], None]] | None = None,
) -> Outcome:
    """Capture calls into a folder, and read what the capture shows.

    Args:
      call: Calls the program once and waits for its results.
      texts: HLO of the program, in addition to what the capture holds.
      has_device: Whether a device of its own ought to be in the capture.
      without_command_buffers: Compiles the program without them and returns its `call`; None where that cannot be done.
    """
    try:
        captured = capture_steps(call, folder, variant)
    except ProfilerBusyError as error:
        return Outcome(status=Status.SKIPPED, reason=f"not captured: {error}")
    except CaptureError as error:
        return Outcome(status=Status.FAILED, reason=str(error))
    hide_host(folder)
    (path,) = folder.rglob("*.xplane.pb")
    summary = summarise_capture(path, texts, has_device=has_device, steps=captured.steps, step_name=variant)
    if without_command_buffers is not None and is_hidden(summary):
        summary = _capture_operations(summary, without_command_buffers, variant)
    details = TraceDetails(summary=shorten_summary(summary), discarded=captured.discarded)
    return Outcome(status=Status.OK, values={"trace_file_bytes": (path.stat().st_size,)}, details=details)


def _capture_operations(
    summary: TraceSummary, without_command_buffers: Callable[[], Callable[[], None]], variant: str
) -> TraceSummary:
    """Name the operations by a second capture, which is not kept; the same summary where that fails."""
    with tempfile.TemporaryDirectory(prefix="jaxmeter-") as folder, suppress(Exception):
        captured = capture_steps(without_command_buffers(), Path(folder), variant)
        return name_operations(summary, summarise_capture(captured.path, has_device=True, step_name=variant))
    return summary


def hide_host(folder: Path) -> None:
    """Rename `<host>.xplane.pb` and its kin, and overwrite what they say of the machine: a run is shared.

    xprof takes any name before the first dot.
    """
    private = (str(Path.home()), str(Path.cwd()), sys.prefix, *sys.path)
    for path in list(folder.rglob(f"{host_platform.node()}.*")):
        renamed = path.rename(path.with_name(f"host{path.name.removeprefix(host_platform.node())}"))
        if renamed.stat().st_size > 0:
            make_capture_private(renamed, private)
