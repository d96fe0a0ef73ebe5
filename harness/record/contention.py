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
"""Reasons for a lower clock that do not make a launch contended: nothing to do, and a limit that its owner has set.
nvml.h says what each means. That any other counts, however little it slows, is chosen: no GPU has been at hand."""


def stand_alone(clean: int, launches: int) -> bool:
    """Whether the clean launches of a variant count alone; else all of them count, and the variant is contended."""
    return clean >= max(FEWEST_LAUNCHES, FEWEST_CLEAN_SHARE * launches)


def contended(launch: VariantLaunch) -> bool:
    """Whether an absolute time cannot be trusted: too few blocks were undisturbed, or too much was taken in all."""
    return _taken_share(launch) > LARGEST_LOSS or not enough_undisturbed(launch.blocks, launch.cores)


def _taken_share(launch: VariantLaunch) -> float:
    """Share of a launch's time that the hypervisor or a quota took.

    Steal is that of the whole machine. The process bears as much of it as of the time that the machine ran: a core with
    nothing to run loses nothing. All of it, where the machine does not tell.
    """

    def total(name: str) -> float:
        return sum(getattr(block, name) or 0.0 for block in launch.blocks)

    wall_s, cpu_s, machine_s = map(total, ("wall_s", "cpu_s", "machine_s"))
    own_share = min(1.0, cpu_s / machine_s) if machine_s > 0 else 1.0
    stolen_s = min(own_share * total("steal_s"), max(0.0, launch.cores * wall_s - cpu_s))
    # A quota stops a process that has used all of its cores, or more than those for a while.
    lost_s = stolen_s + total("throttled_s")
    return lost_s / max(wall_s, lost_s + cpu_s) if lost_s > 0 else 0.0


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


def enough_undisturbed(blocks: Sequence[Block], cores: float) -> bool:
    """Whether one variant's blocks of one launch hold enough clean ones for an absolute time."""
    clean = undisturbed(blocks, cores)
    fewest = max(1, min(FEWEST_CLEAN_BLOCKS, len(blocks)))
    return len(clean) >= fewest and sum(block.wall_s for block in clean) >= FEWEST_CLEAN_S


def undisturbed(blocks: Sequence[Block], cores: float) -> list[Block]:
    """The clean ones among one variant's blocks of one launch."""
    waits = [_wait_share(block, cores) for block in blocks]
    return [block for block, clean in zip(blocks, clean_blocks(waits), strict=True) if clean]


def _wait_share(block: Block, cores: float) -> float | None:
    return None if block.wait_s is None else lost_share(block.wait_s, block.wall_s, block.cpu_s, cores)
