"""The share of blocks next to which a core was slow, by the calibration loops around them; no jax.

A core of a virtual machine is slow for 1 to 40 ms at a time, probably while its physical core also serves another
machine. No counter of the kernel reports it. Programs then take 1.1 to 1.7 times as long, each by its own factor.
The share is reported, and no block is left out. With only the blocks at full speed, times of one thread scattered far
less within a run, but the normalised times of two runs agreed no better.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from jaxmeter.harness.metrics.statistics import FULL_SPEED_SHARE, SLOWED
from jaxmeter.harness.record.processes import Block, ProcessRecord


def find_slow_share(processes: Iterable[ProcessRecord]) -> float | None:
    """Return the share of blocks of a case's processes next to which the core was slow; None without a calibration."""
    beside = sorted(
        calibration_s
        for process in processes
        for variant in process.variants
        for block in variant.blocks
        if (calibration_s := _read_calibration_s(block)) is not None
    )
    if not beside:
        return None
    full_speed_s = beside[int(FULL_SPEED_SHARE * (len(beside) - 1))]
    return sum(one > SLOWED * full_speed_s for one in beside) / len(beside)


def _read_calibration_s(block: Block) -> float | None:
    """Return the calibration loop's time next to a block; None if it is missing or implausible."""
    return block.calibration_s if block.calibration_s is not None and 0 < block.calibration_s < math.inf else None
