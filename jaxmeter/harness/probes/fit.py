"""Whether a program fits into the memory of its device, by the compiler's plan."""

from __future__ import annotations

from typing import Any

from jaxmeter.harness.machine import jax_internals as internals
from jaxmeter.harness.machine.platforms import Platform


def compare_with_capacity(needed_bytes: int | None, capacity_bytes: int | None) -> str | None:
    """Return `needs 3.2 GiB of 2 GiB`; None if the program fits or if either number is unknown."""
    if needed_bytes is None or capacity_bytes is None or needed_bytes <= capacity_bytes:
        return None
    return f"needs {needed_bytes / 2**30:.3g} GiB of {capacity_bytes / 2**30:.3g} GiB"


def planned_peak_bytes(compiled: Any, platform: Platform) -> int | None:
    """Return the planned peak memory of a program; None if the backend does not report it.

    Raises:
      OwnFaultError: The installed release reports the peak under an unknown name.
    """
    analysis = compiled.memory_analysis()
    if analysis is None:
        return None
    if platform.peak_counts_temporaries and (peak := internals.PEAK_BYTES.get(analysis)):
        return int(peak)
    held = analysis.argument_size_in_bytes + analysis.output_size_in_bytes + analysis.temp_size_in_bytes
    return int(held - analysis.alias_size_in_bytes)
