"""`jaxmeter.read_trace`: a capture as tables, for notebooks."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from jaxmeter.document import html, numbers, terminal
from jaxmeter.document.model import Document, Part, say
from jaxmeter.harness.record.trace_summary import Finding, TracedDevice, TracedOperation, TraceSummary
from jaxmeter.harness.record.wording import counted
from jaxmeter.harness.traces.bound import Bound, Roofs, describe_bound, find_bound, find_rates, find_roofs
from jaxmeter.harness.traces.captures import (
    Capture,
    Captures,
    NoCaptureError,
    choose_host,
    find_captures,
    read_environment,
)
from jaxmeter.harness.traces.summary import (
    analyse_space,
    describe_steps,
    find_busy_s,
    find_busy_share,
    summarise_analysis,
)
from jaxmeter.harness.traces.timeline import Step
from jaxmeter.harness.traces.xplane import open_capture

if TYPE_CHECKING:
    from pandas import DataFrame

ALL = sys.maxsize
"""Operations that a table names at most."""


@dataclass(frozen=True, repr=False)
class Trace:
    """What one host's capture shows; the tables of an unhealthy one are empty.

    Times of steps were traced, so they are no times of the program.

    Args:
      path: Of the `*.xplane.pb`.
      summary: With every operation.
      roofs: Peaks of the device.
    """

    path: Path
    summary: TraceSummary
    roofs: Roofs
    _steps: tuple[Step, ...]

    @property
    def devices(self) -> tuple[TracedDevice, ...]:
        """The devices with operations, with their times by step."""
        return self.summary.devices

    @property
    def ledger(self) -> dict[str, float]:
        """Share of a typical step's wall time by part; the parts add up to 1."""
        return dict(self.summary.ledger)

    @property
    def health(self) -> tuple[Finding, ...]:
        """What is wrong with the capture; with a fatal finding it gives no numbers."""
        return self.summary.findings

    @property
    def bound(self) -> Bound | None:
        """What the program is bound by; None where the capture is unhealthy."""
        return find_bound(self.summary, self.roofs)

    @property
    def rates(self) -> DataFrame:
        """FLOP/s and B/s of the busy device in a typical step, next to the peaks that are known, with the shares."""
        from pandas import DataFrame

        rows = [
            (rate.unit, rate.form, rate.achieved, rate.peak, rate.share)
            for rate in find_rates(self.summary, self.roofs)
        ]
        return DataFrame(rows, columns=["unit", "format", "achieved", "peak", "share"]).astype(
            {"achieved": float, "peak": float, "share": float}
        )

    @property
    def steps(self) -> DataFrame:
        """A row for each step: its number, name, wall time while traced, and a column `busy_s NAME` for each device.

        A step that only one device has is missing in the columns of the others.
        """
        from pandas import DataFrame

        columns: dict[str, list[float | int | str | None]] = {
            "step": [place if step.number is None else step.number for place, step in enumerate(self._steps)],
            "name": [step.name for step in self._steps],
            "traced_s": list(self.summary.traced_s),
        }
        for place, device in enumerate(self.devices):
            own = iter(device.busy_s)
            is_own = (step.device in (None, place) for step in self._steps)
            columns[f"busy_s {device.name}"] = [next(own) if has_one else float("nan") for has_one in is_own]
        return DataFrame(columns)

    @property
    def operations(self) -> DataFrame:
        """A row for each operation of each program, the largest share of the busy time first."""
        from pandas import DataFrame

        fields = [field.name for field in msgspec.structs.fields(TracedOperation)]
        rows = [[getattr(operation, field) for field in fields] for operation in self.summary.operations]
        return DataFrame(rows, columns=fields).astype({"flops": float, "bytes": float})

    def __repr__(self) -> str:
        return terminal.write(self._describe())

    def _repr_html_(self) -> str:
        """The same for notebooks."""
        return html.write(self._describe())

    def _describe(self) -> Document:
        summary = self.summary
        steps = f"{counted(len(self._steps), 'step')} ({describe_steps(summary)})" if self._steps else "no steps"
        platform = summary.platform or "no device"
        title = f"{self.path.name}: {platform}, {steps}, {counted(len(summary.operations), 'operation')}"
        return Document(title, (describe_step(self),))


def read_trace(
    path: str | Path,
    *,
    session: str | None = None,
    host: str | None = None,
    case: str | None = None,
    variant: str | None = None,
    step: str | None = None,
    peaks: str | Path | None = None,
) -> Trace:
    """Return what a profiler capture shows, as tables.

    Args:
      path: A `*.xplane.pb`, the log folder of a `jax.profiler` session, or a run of jaxmeter.
      session: Name of a session in the log folder; by default the newest.
      host: Name of one of several hosts.
      case, variant: Of a run.
      step: Name of the annotated steps; by default the name that lasts longest.
      peaks: A run whose peaks rates are compared with; needed for captures of a CPU that are of no run.
    Raises:
      NoCaptureError: There is no capture, or there are several, or no step of that name, or no peaks in that run; the
        message says what to do. It is a ValueError.
      CaptureError: The file is damaged. It is a ValueError.
      OSError: The file cannot be read.
    """
    captures = find_captures(Path(path), session=session, case=case, variant=variant)
    capture = _choose(captures, host)
    if peaks is not None:
        capture = replace(capture, environment=read_environment(Path(peaks)))
    trace = read_one(capture, step_name=step)
    require_step(trace.summary, step)
    return trace


def read_one(
    capture: Capture, *, has_device: bool | None = None, steps: int | None = None, step_name: str | None = None
) -> Trace:
    """Return what one capture shows.

    Args:
      has_device, steps, step_name: As for `summarise_capture`.
    Raises:
      CaptureError: The file is damaged.
      OSError: The file cannot be read.
    """
    with open_capture(capture.path) as space:
        analysis = analyse_space(space, capture.read_texts(), step_name)
    summary = summarise_analysis(analysis, has_device=has_device, steps=steps, most_operations=ALL)
    return Trace(
        capture.path,
        summary,
        find_roofs(summary, capture.environment),
        analysis.steps.steps if summary.is_healthy else (),
    )


def require_step(summary: TraceSummary, name: str | None) -> None:
    """Complain where the steps of a healthy capture are not those of that name.

    Raises:
      NoCaptureError: With the names that there are.
    """
    if name is None or not summary.is_healthy or (name and name == summary.step_name):
        return
    if name in summary.other_steps:
        raise NoCaptureError(f"the steps named {name!r} cannot be used: steps here are {summary.steps_from}")
    names = ", ".join(filter(None, (summary.step_name, *summary.other_steps)))
    raise NoCaptureError(f"no step is named {name!r}; " + (f"choose one of: {names}" if names else "none is annotated"))


def describe_step(trace: Trace) -> Part:
    """Return how long the device was busy, what bounds the step, and what is wrong with the capture."""
    summary = trace.summary
    sentences = (describe_busy(summary), describe_bound(trace.bound)) if summary.is_healthy else ()
    return say(*sentences, *map(describe_finding, summary.findings))


def describe_busy(summary: TraceSummary) -> str:
    """Return how long the busiest device was busy in a typical step, and which share of the traced step that is."""
    busiest = summary.busiest
    busy_s, share = find_busy_s(busiest), find_busy_share(summary)
    if busiest is None or busy_s is None or share is None:
        return "no device was busy in a step"
    return f"device {busiest.name} was busy for {numbers.time(busy_s)}, {numbers.percent(share)} of the traced step"


def describe_finding(finding: Finding) -> str:
    """Return what is wrong and what helps, in one line."""
    kind = "unhealthy" if finding.is_fatal else "note"
    return f"{kind}: {finding.text}" + (f"; {finding.remedy}" if finding.remedy else "")


def _choose(captures: Captures, host: str | None) -> Capture:
    if (count := len(captures.subjects)) > 1:
        names = ", ".join(f"case={case!r} variant={variant!r}" for case, variant, _ in captures.subjects[:5])
        raise NoCaptureError(f"the run has {count} captures; choose by case and variant, such as {names}")
    if host is not None:
        return choose_host(captures, host)
    if len(captures.captures) > 1:
        raise NoCaptureError(f"the session has several hosts; choose one by host=: {', '.join(captures.hosts)}")
    return captures.captures[0]
