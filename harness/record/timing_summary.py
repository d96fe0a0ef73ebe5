"""From one launch's raw samples to one value per metric, and from launches to a timing outcome. No jax.

Summaries can be made again from the launch files; `statistics.VERSION` says by which rules they were made.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import TypeGuard

from harness.record.launches import Block, LaunchRecord, VariantLaunch
from harness.record.outcomes import Number, Outcome, Status, TimingDetails
from harness.record.statistics import FEWEST_CLEAN_BLOCKS, FEWEST_CLEAN_S, clean_blocks, paired_log_ratio


def summarise(launches: Sequence[Sequence[LaunchRecord]], variant: str, baseline: str) -> Outcome:
    """One variant's timing over all launches.

    Args:
      launches: By launch index, the processes of that index: one for JAX's variants, one per peer.
    Returns:
      execution_s, dispatch_s and log_ratio with one value per launch, null where the launch lacks the variant.
    """
    own = [_find(processes, variant) for processes in launches]
    base = [_find(processes, baseline) for processes in launches]
    values: dict[str, tuple[Number | None, ...]] = {
        "execution_s": tuple(None if launch is None else execution_s(launch) for launch in own),
        "dispatch_s": tuple(statistics.median(launch.dispatch_s) if _dispatches(launch) else None for launch in own),
    }
    if variant != baseline and any(base):
        values["log_ratio"] = tuple(_log_ratio(processes, variant, baseline) for processes in launches)
    present = [launch for launch in own if launch is not None]
    details = TimingDetails(
        launches=len(present),
        contended=sum(map(contended, present)),
        unsteady=sum(not launch.steady for launch in present),
    )
    return Outcome(status=Status.OK, values=values, details=details)


def execution_s(launch: VariantLaunch) -> float:
    """Median over a launch's clean blocks; over all its blocks where too few are clean (then it is contended)."""
    blocks = launch.blocks if contended(launch) else undisturbed(launch.blocks, launch.cores)
    return statistics.median(map(_median, blocks))


def contended(launch: VariantLaunch) -> bool:
    """Whether too few blocks were undisturbed for an absolute time to be trusted."""
    return not enough_undisturbed(launch.blocks, launch.cores)


def is_contended(record: LaunchRecord) -> bool:
    """Whether the absolute time of some variant of a launch is not to be trusted."""
    return any(map(contended, record.variants))


def _dispatches(launch: VariantLaunch | None) -> TypeGuard[VariantLaunch]:
    return launch is not None and bool(launch.dispatch_s)


def _find(processes: Sequence[LaunchRecord], variant: str) -> VariantLaunch | None:
    return next((item for process in processes for item in process.variants if item.variant == variant), None)


def _log_ratio(processes: Sequence[LaunchRecord], variant: str, baseline: str) -> float | None:
    for process in processes:
        by_name = {item.variant: item for item in process.variants}
        if variant in by_name and baseline in by_name:
            pairs = [list(map(_median, by_name[name].blocks)) for name in (baseline, variant)]
            return paired_log_ratio(*pairs)
    one, other = _find(processes, baseline), _find(processes, variant)
    if one is None or other is None:
        return None
    return math.log(execution_s(one) / execution_s(other))


def enough_undisturbed(blocks: Sequence[Block], cores: int) -> bool:
    """Whether one variant's blocks of one launch hold enough clean ones for an absolute time."""
    clean = undisturbed(blocks, cores)
    return len(clean) >= FEWEST_CLEAN_BLOCKS and sum(block.wall_s for block in clean) >= FEWEST_CLEAN_S


def undisturbed(blocks: Sequence[Block], cores: int) -> list[Block]:
    """The clean ones among one variant's blocks of one launch."""
    waits = [_wait_share(block, cores) for block in blocks]
    return [block for block, clean in zip(blocks, clean_blocks(waits), strict=True) if clean]


def _wait_share(block: Block, cores: int) -> float | None:
    """Share of a block's wall time that its threads waited for a core which another process may have had.

    Threads of one process also wait for each other. What the process itself used of its cores, nobody took from it.
    """
    if block.wait_s is None:
        return None
    return min(block.wait_s, max(0.0, cores * block.wall_s - block.cpu_s)) / block.wall_s


def _median(block: Block) -> float:
    return statistics.median(block.samples_s)
