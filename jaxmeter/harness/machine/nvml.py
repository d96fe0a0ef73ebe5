"""The states of devices between the passes: clocks and throttle reasons, from NVIDIA's management library."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Protocol

from jaxmeter.harness.record.processes import IDLE, DeviceState

_HZ = 1e6
_PCI_ID_LENGTH = 32

REASONS = {
    0x1: IDLE,
    0x2: "applications clocks setting",
    0x4: "sw power cap",
    0x8: "hw slowdown",
    0x10: "sync boost",
    0x20: "sw thermal slowdown",
    0x40: "hw thermal slowdown",
    0x80: "hw power brake slowdown",
    0x100: "display clocks setting",
    0x200: "board limit",
    0x400: "reliability",
}
"""Reasons by bit, in the words of nvidia-smi. Source: nvml.h, nvmlClocksEventReason...; before driver 535 these were
called throttle reasons, and included the last two."""


class Nvml:
    """Some GPUs, read together: the slowest clock, and every reason."""

    def __init__(self, library: Any, handles: Sequence[Any]) -> None:
        self._library, self._handles = library, handles

    def read(self, pass_number: int) -> DeviceState:
        """Return the current state of the GPUs."""
        nvml = self._library
        clocks = [self._ask(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM) for handle in self._handles]
        most = [self._ask(nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_SM) for handle in self._handles]
        bits = 0
        for handle in self._handles:
            bits |= self._reasons(handle) or 0
        return DeviceState(
            pass_number=pass_number,
            clock_hz=_least_hz(clocks),
            most_clock_hz=_least_hz(most),
            throttled=tuple(word for bit, word in REASONS.items() if bits & bit),
        )

    def close(self) -> None:
        """Close the library."""
        self._ask(self._library.nvmlShutdown)

    def _reasons(self, handle: Any) -> int | None:
        """The present name is of drivers since 535, the other of all before."""
        for name in ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"):
            function = getattr(self._library, name, None)
            if function is not None and (reasons := self._ask(function, handle)) is not None:
                return reasons
        return None

    def _ask(self, function: Callable[..., Any], *args: Any) -> int | None:
        try:
            value = function(*args)
        except self._library.NVMLError:  # not supported, or not allowed
            return None
        return None if value is None else int(value)


def open_nvml(
    ordinals: Sequence[int], find_pci_id: Callable[[int], bytes | None] | None = None, library: Any = None
) -> Nvml | None:
    """The GPUs with these numbers in this process; None where they cannot be asked.

    Args:
      ordinals: As CUDA counts them here. NVML counts all of the machine's, in another order.
      find_pci_id: Where a GPU sits, by its number in CUDA.
      library: The module pynvml.
    """
    if library is None:
        try:
            library = import_module("pynvml")
        except ImportError:  # not every installation has it
            return None
    try:
        library.nvmlInit()
        places = [(find_pci_id or _find_pci_id)(ordinal) for ordinal in ordinals]
        handles = [library.nvmlDeviceGetHandleByPciBusId(place) for place in places if place is not None]
    except library.NVMLError:
        return None
    return Nvml(library, handles) if handles else None


def find_driver(library: Any = None) -> str | None:
    """The version of NVIDIA's driver, such as `570.86.15`; None where it cannot be asked.

    Args:
      library: The module pynvml.
    """
    try:
        nvml = import_module("pynvml") if library is None else library
    except ImportError:
        return None
    try:
        nvml.nvmlInit()
        version = nvml.nvmlSystemGetDriverVersion()
        nvml.nvmlShutdown()
    except nvml.NVMLError:
        return None
    return version.decode() if isinstance(version, bytes) else str(version)


def _find_pci_id(ordinal: int) -> bytes | None:
    """From CUDA's driver, which jax has loaded and which has heeded CUDA_VISIBLE_DEVICES in all its ways of writing."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    device, text = ctypes.c_int(), ctypes.create_string_buffer(_PCI_ID_LENGTH)
    failed = (
        cuda.cuInit(0)
        or cuda.cuDeviceGet(ctypes.byref(device), ordinal)
        or cuda.cuDeviceGetPCIBusId(text, _PCI_ID_LENGTH, device)
    )
    return None if failed else text.value


def _least_hz(megahertz: Sequence[int | None]) -> float | None:
    known = [value for value in megahertz if value is not None]
    return min(known) * _HZ if known else None


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
