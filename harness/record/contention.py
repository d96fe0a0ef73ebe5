"""Which blocks were disturbed, and which launches are contended: their absolute times are not to be trusted."""

from __future__ import annotations

from collections.abc import Sequence

from harness.record.launches import IDLE, Block, DeviceState, LaunchRecord, VariantLaunch
from harness.record.statistics import (
    FEWEST_CLEAN_BLOCKS,
    FEWEST_CLEAN_S,
    FEWEST_CLEAN_SHARE,
    FEWEST_LAUNCHES,
    LARGEST_LOSS,
    MOST_SLOW_STATES,
    SLOWEST_CLOCK,
    clean_blocks,
    lost_share,
)

HARMLESS = frozenset({IDLE, "applications clocks setting"})
"""Reasons for a lower clock that do not make a launch contended: nothing to do, and a limit that its owner has set."""


def stand_alone(clean: int, launches: int) -> bool:
    """Whether the clean launches of a variant count alone; else all of them count, and the variant is contended."""
    return clean >= max(FEWEST_LAUNCHES, FEWEST_CLEAN_SHARE * launches)


def contended(launch: VariantLaunch) -> bool:
    """Whether an absolute time cannot be trusted: too few blocks were undisturbed, or too much was taken in all."""
    lost_s = sum((block.steal_s or 0.0) + (block.throttled_s or 0.0) for block in launch.blocks)
    wall_s, cpu_s = (sum(getattr(block, name) for block in launch.blocks) for name in ("wall_s", "cpu_s"))
    too_much = lost_share(lost_s, wall_s, cpu_s, launch.cores) > LARGEST_LOSS
    return too_much or not enough_undisturbed(launch.blocks, launch.cores)


def is_disturbed(process: LaunchRecord) -> bool:
    """Whether any variant of a process is contended, or its device was slower than it can be."""
    return is_slowed(process.device_states) or any(map(contended, process.variants))


def is_slowed(states: Sequence[DeviceState]) -> bool:
    """Whether a device was throttled, or its clock too low while it worked, in too many of the looks at it."""
    return sum(map(_is_slow, states)) > MOST_SLOW_STATES * len(states)


def _is_slow(state: DeviceState) -> bool:
    if set(state.throttled) - HARMLESS:
        return True
    if IDLE in state.throttled or state.clock_hz is None or state.most_clock_hz is None:
        return False
    return state.clock_hz < SLOWEST_CLOCK * state.most_clock_hz


def enough_undisturbed(blocks: Sequence[Block], cores: int) -> bool:
    """Whether one variant's blocks of one launch hold enough clean ones for an absolute time."""
    clean = undisturbed(blocks, cores)
    fewest = max(1, min(FEWEST_CLEAN_BLOCKS, len(blocks)))
    return len(clean) >= fewest and sum(block.wall_s for block in clean) >= FEWEST_CLEAN_S


def undisturbed(blocks: Sequence[Block], cores: int) -> list[Block]:
    """The clean ones among one variant's blocks of one launch."""
    waits = [_wait_share(block, cores) for block in blocks]
    return [block for block, clean in zip(blocks, clean_blocks(waits), strict=True) if clean]


def _wait_share(block: Block, cores: int) -> float | None:
    return None if block.wait_s is None else lost_share(block.wait_s, block.wall_s, block.cpu_s, cores)
