"""What devices tell of themselves between the passes: their clocks, and why they are slower than they could be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from jaxmeter.harness.machine.nvml import open_nvml
from jaxmeter.harness.record.processes import DeviceState


class ReadState(Protocol):
    """A device, open to be asked."""

    def read(self, pass_number: int) -> DeviceState:
        """Its state now; what it does not tell is null."""

    def close(self) -> None:
        """Ends the asking."""


LIBRARIES: dict[str, Callable[[Sequence[int]], ReadState | None]] = {"nvml": open_nvml}
"""By the name that a platform's row has. Each opens devices by their numbers in this process; None where it cannot."""


class DeviceStates:
    """The states of one process's devices."""

    def __init__(self, library: str | None, ordinals: Sequence[int]) -> None:
        self.taken: list[DeviceState] = []
        self._reader = LIBRARIES[library](ordinals) if library is not None and ordinals else None

    def take(self, pass_number: int) -> None:
        """Asks once; nothing where nobody answers."""
        if self._reader is not None:
            self.taken.append(self._reader.read(pass_number))

    def close(self) -> None:
        """Ends the asking."""
        if self._reader is not None:
            self._reader.close()
