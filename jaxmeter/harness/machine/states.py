"""The states that devices report between the passes: their clocks, and why these are below the maximum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from jaxmeter.harness.machine.nvml import open_nvml
from jaxmeter.harness.record.processes import DeviceState


class ReadState(Protocol):
    """An opened device whose state can be read."""

    def read(self, pass_number: int) -> DeviceState:
        """Return the current state; values that the device does not report are None."""

    def close(self) -> None:
        """Stop reading states."""


LIBRARIES: dict[str, Callable[[Sequence[int]], ReadState | None]] = {"nvml": open_nvml}
"""Libraries by the name in a platform's row. Each opens devices by their ordinals in this process, or returns None."""


class DeviceStates:
    """The states of one process's devices."""

    def __init__(self, library: str | None, ordinals: Sequence[int]) -> None:
        self.taken: list[DeviceState] = []
        self._reader = LIBRARIES[library](ordinals) if library is not None and ordinals else None

    def take(self, pass_number: int) -> None:
        """Read the state once, if there is a library for these devices."""
        if self._reader is not None:
            self.taken.append(self._reader.read(pass_number))

    def close(self) -> None:
        """Stop reading states."""
        if self._reader is not None:
            self._reader.close()
