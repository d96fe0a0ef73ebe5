"""`jaxmeter.device_time`: how long a call keeps the device busy, from a profiler capture of a few calls."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax

from jaxmeter.document import html, terminal
from jaxmeter.document.model import Document
from jaxmeter.harness.machine.platforms import refuse_ranks
from jaxmeter.harness.notebook.calls import Call, describe_callable
from jaxmeter.harness.notebook.state import UserState
from jaxmeter.harness.programs.capturing import Captured, ProfilerBusyError, capture_steps
from jaxmeter.harness.record.trace_summary import Finding
from jaxmeter.harness.traces.captures import Capture
from jaxmeter.harness.traces.reading import Trace, describe_step, read_one
from jaxmeter.harness.traces.summary import find_busy_s, find_busy_share

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["DeviceTime", "ProfilerBusyError", "device_time"]


@dataclass(frozen=True, repr=False)
class DeviceTime:
    """How long calls kept the devices busy. Wall times of a capture are no times of the program.

    Args:
      name: Of the callable.
      trace: All that the capture shows; the capture itself is gone.
      calls: That were captured.
    """

    name: str
    trace: Trace
    calls: int

    @property
    def busy_s(self) -> float | None:
        """Busy seconds per call of the busiest device, the median over calls; None where the capture is unhealthy."""
        return find_busy_s(self.trace.summary.busiest) if self._is_healthy else None

    @property
    def by_device(self) -> dict[str, float]:
        """Median busy seconds per call by device; empty where the capture is unhealthy."""
        times = ((device.name, find_busy_s(device)) for device in self.trace.devices if self._is_healthy)
        return {name: busy_s for name, busy_s in times if busy_s is not None}

    @property
    def share(self) -> float | None:
        """Share of the traced call in which the busiest device is busy; None where the capture is unhealthy."""
        return find_busy_share(self.trace.summary) if self._is_healthy else None

    @property
    def operations(self) -> DataFrame:
        """A row for each operation, the largest share of the busy time first."""
        return self.trace.operations

    @property
    def health(self) -> tuple[Finding, ...]:
        """What is wrong with the capture."""
        return self.trace.health

    @property
    def _is_healthy(self) -> bool:
        return self.trace.summary.is_healthy

    def __repr__(self) -> str:
        return terminal.write(self._describe())

    def _repr_html_(self) -> str:
        """The same for notebooks."""
        return html.write(self._describe())

    def _describe(self) -> Document:
        if self._is_healthy:
            title = f"{self.name} on {self.trace.summary.platform}, median of {self.calls} calls"
        else:
            title = f"{self.name}: no device time"
        return Document(title, (describe_step(self.trace),))


def device_time(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> DeviceTime:
    """Return how long a call keeps the device busy: the union of its operations, from a capture of 3 to 50 calls.

    The callable is called as it is. Donated arguments are threaded or copied, and what calls change in place is as
    before afterwards, as with `jaxmeter.measure`.

    Raises:
      ValueError: This process is one of several ranks.
      ProfilerBusyError: A profiler session is running in this process. It is a RuntimeError.
      CaptureError: The profiler wrote no capture, or a damaged one. It is a ValueError.
      Whatever the function itself raises.
    """
    if (problem := refuse_ranks(os.environ) or refuse_ranks({}, jax.process_count())) is not None:
        raise ValueError(problem)
    name = describe_callable(function).name
    state = UserState.of_calls([(function, args, kwargs)])
    state.keep()
    try:
        call = Call(function, args, kwargs, state, {}, is_eager=True)
        call()  # finds out which arguments it consumes
        with tempfile.TemporaryDirectory(prefix="jaxmeter-") as folder:
            captured = _capture(call, Path(folder), name)
            has_device = any(device.platform != "cpu" for device in jax.local_devices())
            capture = Capture(captured.path, "host")
            trace = read_one(capture, has_device=has_device, steps=captured.steps, step_name=name)
    finally:
        state.put_back()
    return DeviceTime(name, trace, captured.steps)


def _capture(call: Call, folder: Path, name: str) -> Captured:
    prepared = call.prepare()
    prepared.reset()
    args = prepared.args

    def renew() -> None:
        nonlocal args
        if prepared.renew is not None:
            args = prepared.renew()

    def once() -> None:
        prepared.wait(prepared.call(*args))

    return capture_steps(once, folder, name, before=renew)
