"""Which blocks a core ran at its full speed, by the canaries beside them; no jax.

A core of a virtual machine is slow while its physical core serves another machine too: for one to forty milliseconds,
which no counter of the kernel tells. What then runs takes 1.1 to 1.7 times as long, each program by a factor of its
own. So blocks of that time are set aside. That goes by the canary alone and never by the block's own samples: what a
program does by itself, now and then, stays in its time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from harness.record.launches import Block, LaunchRecord
from harness.record.statistics import FULL_SPEED_SHARE, SLOWED


def find_full_speed_s(processes: Iterable[LaunchRecord]) -> float | None:
    """What the canary takes at full speed: the least but one in twenty beside the blocks of a case's processes.

    Returns:
      Seconds; None where no canary stands beside the blocks.
    """
    beside = sorted(
        canary_s
        for process in processes
        for variant in process.variants
        for block in variant.blocks
        if (canary_s := _read_canary_s(block)) is not None
    )
    return beside[int(FULL_SPEED_SHARE * (len(beside) - 1))] if beside else None


def choose_full_speed(blocks: Sequence[Block], full_speed_s: float | None) -> list[Block]:
    """The blocks beside which the canary was about as fast as at full speed; all, where nothing tells."""
    if full_speed_s is None:
        return list(blocks)
    beside = ((block, _read_canary_s(block)) for block in blocks)
    return [block for block, canary_s in beside if canary_s is None or canary_s <= SLOWED * full_speed_s]


def _read_canary_s(block: Block) -> float | None:
    """The canary's time beside a block; None where there is none that can have been measured."""
    return block.canary_s if block.canary_s is not None and 0 < block.canary_s < math.inf else None
