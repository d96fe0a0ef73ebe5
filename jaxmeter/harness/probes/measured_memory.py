"""Measured peak memory: the peak of the device's allocator, or of the process's resident memory on a CPU."""

from __future__ import annotations

import ctypes
import re
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy

from jaxmeter.harness.probes.context import Context, Findings, probe_each
from jaxmeter.harness.programs.arguments import list_distinct, size_bytes
from jaxmeter.harness.programs.jax_events import watch_jax
from jaxmeter.harness.programs.modes import Prepared
from jaxmeter.harness.record import Outcome, Status

NO_COUNTER = "neither the device's allocator nor the system reports peak memory here"
HIDDEN = "a call's peak hides below an earlier one of its process, which the allocator cannot forget"
TOO_SMALL = (
    "the process grows by less than 1 MiB during a call: it needs little in addition to its arguments, or uses memory "
    "kept from the calls before"
)

COMPILED = "every call compiles, and the measured peak includes the compiler's own memory"

SMALLEST_BYTES = 2**20
"""The kernel's count of resident memory is off by some tens of KiB (it is kept per core)."""

CALLS = 3
"""Calls whose largest peak counts. One slow call is enough: it releases its memory long before the next."""

SLOW_S = 0.2

TRIAL_BYTES = 8 * 2**20
SETTLE_S = 0.02
"""Wait before a call: XLA's threads release the result of the previous call late, which would hide this call's peak.
With 10, 20 and 50 ms, the peaks of seven variants differed by no more than they do between processes."""

_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1
_SMALLEST_MAPPING = 64 * 1024
"""Buffers of at least this size come from the kernel and return to it, so that a peak belongs to this call only."""

_PEAK, _NOW = "peak_bytes_in_use", "bytes_in_use"
"""Counters that an allocator reports, by JAX's names."""

_RESET_PEAK = "5"
"""The text that resets the peak, written to /proc/self/clear_refs; man 5 proc."""


class NoCounterError(Exception):
    """The system does not report the memory of a process."""


def probe_variants(variants: tuple[str, ...], context: Context) -> Findings:
    """Measure the peak memory of a call of each variant."""
    return probe_each("measured_memory", watch_call, variants, context)


def watch_call(variant: str, prepared: Prepared, context: Context) -> Outcome:
    """Measure a call's peak memory with its arguments: of the first call if an allocator counts, else of a warm one."""
    if prepared.returns_early and (device := _find_device(prepared.args)).memory_stats():
        return _of_allocator(prepared, device)
    libc = _return_memory_at_once()
    prepared.wait(prepared.call(*prepared.args))
    start = context.clock()
    prepared.wait(prepared.call(*prepared.args))
    calls = 1 if context.clock() - start > SLOW_S else CALLS
    try:
        _check_counter(libc)
        with watch_jax() as seen:
            scaling = max(_scaling(lambda: prepared.wait(prepared.call(*prepared.args)), libc) for _ in range(calls))
    except NoCounterError:
        return Outcome(status=Status.UNSUPPORTED, reason=NO_COUNTER)
    if scaling < SMALLEST_BYTES:
        return Outcome(status=Status.OK, notes=(TOO_SMALL,))
    notes = (COMPILED,) if seen.compiled else ()
    held_bytes = _used_bytes(prepared) + scaling
    return Outcome(status=Status.OK, values={"measured_peak_bytes": (held_bytes,)}, notes=notes)


def _used_bytes(prepared: Prepared) -> int:
    """What the arguments hold; of those of a program only what it takes: jit leaves out what it never reads."""
    whole, read = size_bytes(prepared.args), _read_bytes(prepared)
    if read is None:
        return whole
    shards = [len(leaf.sharding.device_set) for leaf in jax.tree.leaves(prepared.args) if isinstance(leaf, jax.Array)]
    return min(whole, read * max(shards, default=1))


def _read_bytes(prepared: Prepared) -> int | None:
    """What a program takes of its arguments, on each device; None where there is no one program."""
    analysis = None if prepared.stages is None else prepared.stages.compiled.memory_analysis()
    return None if analysis is None else int(analysis.argument_size_in_bytes)


def _used_bytes_on(device: Any, prepared: Prepared) -> int:
    """What of the arguments is on a device before a call; of those of a program at most what it takes of them."""
    leaves = list_distinct(prepared.args)
    arrays = [leaf for leaf in leaves if isinstance(leaf, jax.Array)]
    shards = [shard for array in arrays for shard in array.addressable_shards if shard.device == device]
    whole, read = sum(int(shard.data.nbytes) for shard in shards), _read_bytes(prepared)
    if read is None:
        return whole
    brought = sum(getattr(leaf, "nbytes", 0) for leaf in leaves if not isinstance(leaf, jax.Array))
    return min(whole, max(0, read - brought))


def _find_device(args: Any) -> Any:
    """The first device; where all arguments are on others, the first of those."""
    arrays = [leaf for leaf in jax.tree.leaves(args) if isinstance(leaf, jax.Array)]
    devices: set[Any] = {device for array in arrays for device in array.sharding.device_set}
    first = jax.devices()[0]
    return first if first in devices or not devices else min(devices, key=lambda device: device.id)


@cache
def _return_memory_at_once() -> Any:
    """Has the C library give large buffers back to the kernel when they are freed; returns that library."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):  # glibc
        libc.mallopt(_MMAP_THRESHOLD, _SMALLEST_MAPPING)
        libc.mallopt(_TRIM_THRESHOLD, 0)
    return libc


def _of_allocator(prepared: Prepared, device: Any) -> Outcome:
    """What the arguments hold, and by how much the device's memory grows: other copies of them are no call's."""
    used_bytes = _used_bytes_on(device, prepared)  # now: a call may take its arguments
    before = device.memory_stats() or {}
    prepared.wait(prepared.call(*prepared.args))
    after = device.memory_stats() or {}
    try:
        earlier, peak, begun = before[_PEAK], after[_PEAK], before[_NOW]
    except KeyError:
        return Outcome(status=Status.UNSUPPORTED, reason=NO_COUNTER)
    held = used_bytes + peak - begun
    if peak > earlier:
        return Outcome(status=Status.OK, values={"measured_peak_bytes": (held,)})
    return Outcome(status=Status.OK, notes=(f"{HIDDEN}: at most {held} bytes",))


@cache
def _check_counter(libc: Any) -> None:
    """Raises NoCounterError where memory that is freed and taken again does not show, as with another allocator.

    Once a process: it takes a tenth of a second.
    """
    for _ in range(2):
        scaling = _scaling(lambda: numpy.ones(TRIAL_BYTES, numpy.uint8), libc)
    if scaling < TRIAL_BYTES / 2:
        raise NoCounterError


def _scaling(call: Callable[[], Any], libc: Any) -> int:
    """Return by how much the process's resident memory grows at most during one call, in bytes.

    Raises:
      NoCounterError: The system does not report it.
    """
    time.sleep(SETTLE_S)
    if hasattr(libc, "malloc_trim"):  # glibc: what is free inside its heaps would be used again without growth
        libc.malloc_trim(0)
    try:
        Path("/proc/self/clear_refs").write_text(_RESET_PEAK, encoding="ascii")
    except OSError as error:
        raise NoCounterError from error
    before = _status("VmRSS")
    call()
    return _status("VmHWM") - before


def _status(name: str) -> int:
    """A line of /proc/self/status, in bytes.

    Raises:
      NoCounterError: There is no such line.
    """
    try:
        text = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError as error:
        raise NoCounterError from error
    match = re.search(rf"^{name}:\s+(\d+) kB$", text, re.MULTILINE)
    if match is None:
        raise NoCounterError
    return int(match[1]) * 1024
