"""The typical step of a capture: medians over its steps, and rates of its operations."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from jaxmeter.harness.record.trace_summary import TracedDevice, TracedOperation, TraceSummary
from jaxmeter.harness.traces.programs import CONTROL


def find_median(values: Sequence[float]) -> float | None:
    """Return the median; None without values."""
    return median(values) if values else None


def find_step_s(summary: TraceSummary) -> float | None:
    """Return the median wall time of the traced steps; None where there is no step."""
    return find_median(summary.traced_s)


def find_busy_s(device: TracedDevice | None) -> float | None:
    """Return the median busy time of a device's steps; None where it has none."""
    return None if device is None else find_median(device.busy_s)


def find_busy_share(summary: TraceSummary) -> float | None:
    """Return the share of the traced steps' time in which the busiest device is busy; None where it is unknown."""
    device = summary.busiest
    total_s = 0.0 if device is None else sum(list_step_times(summary, device))
    return sum(device.busy_s) / total_s if device is not None and device.busy_s and total_s > 0 else None


def list_step_times(summary: TraceSummary, device: TracedDevice) -> Sequence[float]:
    """Return the wall times of a device's traced steps: its own, which follow each other, or those that all share."""
    if count_device_steps(summary) != len(summary.traced_s):
        return summary.traced_s
    first = sum(len(earlier.busy_s) for earlier in summary.devices[: summary.devices.index(device)])
    return summary.traced_s[first : first + len(device.busy_s)]


def find_busy_per_step(summary: TraceSummary) -> float | None:
    """Return the mean busy time of a step of one device; None where there is no step."""
    count = count_device_steps(summary)
    return sum(sum(device.busy_s) for device in summary.devices) / count if count else None


def describe_steps(summary: TraceSummary) -> str:
    """Return what a step is, such as `step annotations named train`."""
    name = f" named {summary.step_name}" if summary.step_name else ""
    return f"{summary.steps_from}{name}" + (", each until the next begins" if summary.until_next else "")


def find_slowest(summaries: Sequence[TraceSummary]) -> int:
    """Return the place of the host with the longest typical step, among the healthy ones if there are any."""

    def key(place: int) -> tuple[bool, float, float]:
        summary = summaries[place]
        return summary.is_healthy, find_step_s(summary) or 0.0, find_busy_s(summary.busiest) or 0.0

    return max(range(len(summaries)), key=key)


def find_rate(operation: TracedOperation, amount: float | None) -> float | None:
    """Return FLOP/s or B/s while the operation ran; None where nobody can say.

    Operations that overlap share the device, so the rate is a lower bound there. A loop's time is that of what it runs,
    and what starts a copy returns before the bytes are moved.

    Args:
      amount: FLOPs or bytes of one execution.
    """
    is_apart = operation.category == CONTROL or operation.opcode.endswith("-start")
    if not amount or is_apart or operation.total_s <= 0:
        return None
    return amount * operation.count / operation.total_s


def count_device_steps(summary: TraceSummary) -> int:
    """Return how many pairs of a step and a device a capture has: devices share their steps, or have their own."""
    return sum(len(device.busy_s) for device in summary.devices)
