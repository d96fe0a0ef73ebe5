"""Disturbed blocks, slow cores and contended processes, whose absolute times cannot be trusted. No jax."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from jaxmeter.harness.metrics.statistics import (
    COUNTED_WITHIN_S,
    FEWEST_CLEAN_BLOCKS,
    FEWEST_CLEAN_S,
    FEWEST_CLEAN_SHARE,
    FEWEST_PROCESSES,
    FULL_SPEED_SHARE,
    LARGEST_LOSS,
    LARGEST_OTHERS,
    MOST_SLOW_STATES,
    SLOWED,
    SLOWEST_CLOCK,
    clean_blocks,
    lost_share,
)
from jaxmeter.harness.record.processes import IDLE, Block, DeviceState, Load, ProcessRecord, VariantSamples

HARMLESS = frozenset({IDLE, "applications clocks setting"})
"""Reasons for a lower clock that do not make a process contended: an idle device, and a limit that its owner has set.
nvml.h defines each reason. By choice, every other reason counts, however small its effect is. At the power limit of an
H200, "sw power cap", products of 8192^2 in bfloat16 took 1.69 ms in one process and 2.07 ms in another."""


def stand_alone(clean: int, processes: int) -> bool:
    """Return whether only the clean processes of a variant count; else all count, and the variant is contended."""
    return clean >= max(FEWEST_PROCESSES, FEWEST_CLEAN_SHARE * processes)


def contended(samples: VariantSamples, process: ProcessRecord) -> bool:
    """Return whether other work during the process makes a variant's absolute time untrustworthy."""
    return (
        is_slowed(process.device_states)
        or _taken_share(process) > LARGEST_LOSS
        or (_others_ran(process.load) and not enough_quiet(samples))
    )


def is_noisy(process: ProcessRecord) -> bool:
    """Return whether any variant of a process is contended."""
    return any(contended(item, process) for item in process.variants)


def quiet(samples: VariantSamples, process: ProcessRecord) -> list[Block]:
    """Return the blocks of one variant in one process that count: all, unless other processes ran.

    A program's threads also wait for cores that its other threads use. On two idle cores, the threads of some programs
    wait for 50 % of the time in every process. A process in which they wait twice as long is not slower.
    """
    return _find_clean(samples) if _others_ran(process.load) else list(samples.blocks)


def enough_quiet(samples: VariantSamples) -> bool:
    """Whether one variant's blocks of one process hold enough for an absolute time whose threads had their cores."""
    clean = _find_clean(samples)
    fewest = max(1, min(FEWEST_CLEAN_BLOCKS, len(samples.blocks)))
    return len(clean) >= fewest and sum(block.wall_s for block in clean) >= FEWEST_CLEAN_S


def _others_ran(load: Load | None) -> bool:
    """Return whether other processes used enough time to disturb; also True if the system does not report it."""
    if load is None or load.machine_s is None:
        return True
    return load.machine_s - load.cpu_s > LARGEST_OTHERS * load.wall_s + COUNTED_WITHIN_S


def _taken_share(process: ProcessRecord) -> float:
    """Return the share of a process's time that the hypervisor or a quota took.

    Steal time is counted for the whole machine. An idle core loses nothing, so the process bears the same share of the
    steal time as of the machine's running time. If the running time is unknown, the process bears all of it.
    """
    load = process.load
    if load is None or not process.variants:
        return 0.0
    own_share = min(1.0, load.cpu_s / load.machine_s) if load.machine_s else 1.0
    could_run_s = process.variants[0].cores * load.wall_s
    stolen_s = min(own_share * (load.steal_s or 0.0), max(0.0, could_run_s - load.cpu_s))
    # A quota stops a process that has used all of its cores, or more than those for a while.
    lost_s = stolen_s + (load.throttled_s or 0.0)
    return lost_s / max(load.wall_s, lost_s + load.cpu_s) if lost_s > 0 else 0.0


def is_slowed(states: Sequence[DeviceState]) -> bool:
    """Whether a device was throttled, or its clock too low while it worked, in too many of the looks at it."""
    return sum(map(_is_slow, states)) > MOST_SLOW_STATES * len(states)


def _is_slow(state: DeviceState) -> bool:
    if set(state.throttled) - HARMLESS:
        return True
    if IDLE in state.throttled or state.clock_hz is None or state.most_clock_hz is None:
        return False
    return state.clock_hz < SLOWEST_CLOCK * state.most_clock_hz


def _find_clean(samples: VariantSamples) -> list[Block]:
    waits = [_wait_share(block, samples.cores) for block in samples.blocks]
    return [block for block, clean in zip(samples.blocks, clean_blocks(waits), strict=True) if clean]


def _wait_share(block: Block, cores: float) -> float | None:
    return None if block.wait_s is None else lost_share(block.wait_s, block.wall_s, block.cpu_s, cores)


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
    return sum(block_s > SLOWED * full_speed_s for block_s in beside) / len(beside)


def _read_calibration_s(block: Block) -> float | None:
    """Return the calibration loop's time next to a block; None if it is missing or implausible."""
    return block.calibration_s if block.calibration_s is not None and 0 < block.calibration_s < math.inf else None
