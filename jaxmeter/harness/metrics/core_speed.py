"""Beside how many blocks a core was slow, by the calibration loops around them; no jax.

A core of a virtual machine is slow for one to forty milliseconds at a time, probably while its physical core serves
another machine too; no counter of the kernel tells. What then runs takes 1.1 to 1.7 times as long, each program by a
factor of its own. That is told, and sets nothing aside: of the blocks at full speed alone, times of one thread
scattered far less within a run, and yet two runs agreed no better normalised.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from jaxmeter.harness.metrics.statistics import FULL_SPEED_SHARE, SLOWED
from jaxmeter.harness.record.processes import Block, ProcessRecord


def find_slow_share(processes: Iterable[ProcessRecord]) -> float | None:
    """The share of blocks of a case's processes next to which the core was slow; None without a calibration loop."""
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
    """The calibration loop's time beside a block; None where there is none that can have been measured."""
    return block.calibration_s if block.calibration_s is not None and 0 < block.calibration_s < math.inf else None
