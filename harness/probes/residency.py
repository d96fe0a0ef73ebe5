"""What a call really holds: the peak of the device's allocator, or of the process's resident memory on a CPU."""

from __future__ import annotations

import ctypes
import re
import time
from pathlib import Path
from typing import Any

import jax

from harness.messages import RESIDENCY as KIND
from harness.modes import Prepared
from harness.probes.context import Context, Probe
from harness.probes.memory import size_bytes
from harness.record import Outcome, Status

NO_COUNTER = "neither the device's allocator nor the system tells what a call holds here"
HIDDEN = "the call's peak hides below that of making its inputs, which the allocator cannot forget"
TOO_SMALL = "beside its arguments a call holds less than 1 MiB, too little to tell it from the process's other memory"

SMALLEST_BYTES = 2**20
"""The kernel's count of resident memory is off by some tens of KiB (it is kept per core)."""

CALLS = 3
"""The most of them counts."""

SETTLE_S = 0.05
"""XLA's own threads release the result of the call before a little later; until then it would hide this one's."""

_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1
_SMALLEST_MAPPING = 64 * 1024
"""Buffers from this size on come from the kernel and go back to it, so that a peak is of this call and of no other."""

_RESET_PEAK = "5"
"""Written to /proc/self/clear_refs; man 5 proc."""


def run(variant: str, prepared: Prepared, context: Context) -> Outcome:
    """Calls twice to warm up, then reads what a call holds at most, its arguments included."""
    libc = _return_memory_at_once()
    device = jax.devices()[0]
    if device.memory_stats() is not None and prepared.dispatches:
        return _of_allocator(prepared, device)
    for _ in range(2):
        prepared.wait(prepared.call(*prepared.args))
    try:
        growth = max(_growth(prepared, libc) for _ in range(CALLS))
    except OSError:
        return Outcome(status=Status.UNSUPPORTED, reason=NO_COUNTER)
    if growth < SMALLEST_BYTES:
        return Outcome(status=Status.OK, notes=(TOO_SMALL,))
    return Outcome(status=Status.OK, values={"runtime_peak_bytes": (size_bytes(prepared.args) + growth,)})


RESIDENCY = Probe("memory", KIND, run)


def _of_allocator(prepared: Prepared, device: Any) -> Outcome:
    before = device.memory_stats()["peak_bytes_in_use"]
    prepared.wait(prepared.call(*prepared.args))
    peak = device.memory_stats()["peak_bytes_in_use"]
    if peak > before:
        return Outcome(status=Status.OK, values={"runtime_peak_bytes": (peak,)})
    return Outcome(status=Status.OK, notes=(f"{HIDDEN}: at most {peak} bytes",))


def _growth(prepared: Prepared, libc: Any) -> int:
    """By how much the process's resident memory grows at most during one call, in bytes.

    Raises:
      OSError: The system does not tell.
    """
    time.sleep(SETTLE_S)
    if hasattr(libc, "malloc_trim"):  # glibc: what is free inside its heaps would be used again without growth
        libc.malloc_trim(0)
    Path("/proc/self/clear_refs").write_text(_RESET_PEAK, encoding="ascii")
    before = _status("VmRSS")
    prepared.wait(prepared.call(*prepared.args))
    return _status("VmHWM") - before


def _return_memory_at_once() -> Any:
    """Has the C library give large buffers back to the kernel when they are freed; returns that library."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):  # glibc
        libc.mallopt(_MMAP_THRESHOLD, _SMALLEST_MAPPING)
        libc.mallopt(_TRIM_THRESHOLD, 0)
    return libc


def _status(name: str) -> int:
    """A line of /proc/self/status, in bytes."""
    text = Path("/proc/self/status").read_text(encoding="ascii")
    found = re.search(rf"^{name}:\s+(\d+) kB$", text, re.MULTILINE)
    if found is None:
        raise OSError(f"/proc/self/status has no {name}")
    return int(found[1]) * 1024
