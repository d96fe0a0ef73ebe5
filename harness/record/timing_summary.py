"""From one launch's raw samples to one value per metric, and from launches to a timing outcome. No jax.

Summaries can be made again from the launch files; `statistics.VERSION` says by which rules they were made.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from harness.record.contention import contended, stand_alone, undisturbed
from harness.record.core_speed import find_slow_share
from harness.record.guards import LONGEST_S, SHORTEST_S
from harness.record.launches import ALU, DEVICE, Block, LaunchRecord, VariantLaunch
from harness.record.outcomes import Number, Outcome, Status, TimingDetails
from harness.record.statistics import (
    ALTERNATION_EFFECT,
    SHORTEST_ALTERNATED_S,
    SLOW_SPELL_S,
    UNEQUALLY_PARALLEL,
    agree,
    differs,
    paired_log_ratio,
    speedup,
)
from harness.record.wording import counted


@dataclass(frozen=True)
class _Timed:
    """One variant in one launch, with the process that timed it."""

    process: LaunchRecord
    samples: VariantLaunch
    contended: bool


def summarise(rounds: Sequence[Sequence[LaunchRecord]], variant: str, baseline: str) -> Outcome:
    """One variant's timing over all launches.

    Args:
      rounds: By round, its processes: one for JAX's variants, one per peer.
    Returns:
      execution_s, over_canary, dispatch_s, solo_s, parallelism, canary_s and log_ratio with one value per launch, null
      where the launch lacks the variant. Contended launches have none but canary_s, which is of the machine, where
      enough clean ones remain; a ratio is lost only where the two sides lost unequally.
    """
    own = [_find(processes, variant) for processes in rounds]
    base = [_find(processes, baseline) for processes in rounds]
    trusted = _list_trusted(own)
    values: dict[str, tuple[Number | None, ...]] = {
        "execution_s": tuple(None if one is None else execution_s(one.samples, one.process) for one in trusted),
        "over_canary": tuple(None if one is None else over_canary(one.samples, one.process) for one in trusted),
        "dispatch_s": tuple(None if one is None else _median_of(one.samples.dispatch_s) for one in trusted),
        "solo_s": tuple(None if one is None else _median_of(one.samples.solo_s) for one in trusted),
        "parallelism": tuple(None if one is None else parallelism(one.samples) for one in trusted),
        "canary_s": tuple(None if one is None else _canary_s(one.process) for one in own),
    }
    doubtful_ratios = False
    if variant != baseline and any(base):
        values["log_ratio"], doubtful_ratios = _log_ratios(own, base)
    present = [one for one in own if one is not None]
    details = TimingDetails(
        launches=len(present),
        contended=sum(one.contended for one in present),
        doubtful_ratios=doubtful_ratios,
        unsteady=sum(not one.samples.steady for one in present),
        canary=_find_identity(present),
        slow_share=find_slow_share([one.process for one in present]),
        compiles_per_call=max((one.samples.compiles_per_call for one in present), default=0),
    )
    used = {name: found for name, found in values.items() if name in _ALWAYS or any(one is not None for one in found)}
    notes = (*_describe_compiling([one.samples for one in present]), *_describe_alternation(values))
    return Outcome(status=Status.OK, values=used, notes=notes, details=details)


BESIDE = ", beside each block"
"""What the identity of a canary ends with that each block is held against: times over it are another measure."""

_ALWAYS = frozenset({"execution_s", "dispatch_s", "log_ratio"})
"""Values that an outcome has also where no launch has any."""


def execution_s(samples: VariantLaunch, process: LaunchRecord) -> float:
    """Median over a launch's undisturbed blocks; over all its blocks where it is contended."""
    return statistics.median(map(_median, _list_counted(samples, process)))


def over_canary(samples: VariantLaunch, process: LaunchRecord) -> float | None:
    """Median over the same blocks of their time over the canary beside them; None without a canary.

    Of a block that is longer than a core is slow for at a time, two samples at its ends say nothing: it is held against
    the median of the process, as is each where the canary does not stand beside all.
    """
    found = _find_canary(process)
    if found is None:
        return None
    identity, usual_s = found
    is_beside = identity.endswith(BESIDE)
    return statistics.median(
        _median(block) / (block.canary_s if is_beside and block.canary_s and block.wall_s <= SLOW_SPELL_S else usual_s)
        for block in _list_counted(samples, process)
    )


def _list_counted(samples: VariantLaunch, process: LaunchRecord) -> Sequence[Block]:
    return samples.blocks if contended(samples, process) else undisturbed(samples, process)


def parallelism(samples: VariantLaunch) -> float | None:
    """Processor time over wall time of the blocks; None where no time passed."""
    wall_s = sum(block.wall_s for block in samples.blocks)
    return sum(block.cpu_s for block in samples.blocks) / wall_s if wall_s > 0 else None


def _find(processes: Sequence[LaunchRecord], variant: str) -> _Timed | None:
    for process in processes:
        for item in process.variants:
            if item.variant == variant:
                return _Timed(process, item, contended(item, process))
    return None


def _list_trusted(own: Sequence[_Timed | None]) -> list[_Timed | None]:
    """The clean launches alone where there are enough of them, else all."""
    clean = [None if one is None or one.contended else one for one in own]
    return clean if stand_alone(_count(clean), _count(own)) else list(own)


def _count(launches: Iterable[object | None]) -> int:
    return sum(one is not None for one in launches)


def _log_ratios(own: Sequence[_Timed | None], base: Sequence[_Timed | None]) -> tuple[tuple[float | None, ...], bool]:
    """By launch, and whether there is one that cannot be trusted: those are left out where enough others remain."""
    pairs = list(zip(own, base, strict=True))
    ratios = [None if one is None or other is None else _log_ratio(one, other) for one, other in pairs]
    equal = _equally_parallel(own, base)
    trusted = [
        None
        if one is None or other is None or (_any_contended(one, other) and not (equal and _paired(one, other)))
        else ratio
        for ratio, (one, other) in zip(ratios, pairs, strict=True)
    ]
    if stand_alone(_count(trusted), _count(ratios)):
        return tuple(trusted), False
    return tuple(ratios), _count(trusted) < _count(ratios)


def _log_ratio(own: _Timed, base: _Timed) -> float:
    """Paired by the sweep within one process; of two, that of the times over the canary beside each block.

    A machine may have two speeds for minutes, and two processes may meet one each. Without one canary in both, the
    times' own ratio.
    """
    if _paired(own, base):
        return paired_log_ratio(list(map(_median, base.samples.blocks)), list(map(_median, own.samples.blocks)))
    above, below = (over_canary(one.samples, one.process) for one in (base, own))
    if above is None or below is None or _find_identity([own, base]) is None:
        above, below = (execution_s(one.samples, one.process) for one in (base, own))
    return math.log(above / below)


def _paired(one: _Timed, other: _Timed) -> bool:
    """Whether a busy moment hits both."""
    return one.process is other.process


def _any_contended(one: _Timed, other: _Timed) -> bool:
    return one.contended or other.contended


def _equally_parallel(own: Sequence[_Timed | None], base: Sequence[_Timed | None]) -> bool:
    """Whether both lose alike where a core is taken away; by their clean launches, since contended ones look alike."""
    one, other = _usual_parallelism(own), _usual_parallelism(base)
    return one is None or other is None or agree(one, other, within=UNEQUALLY_PARALLEL)


def _usual_parallelism(launches: Sequence[_Timed | None]) -> float | None:
    present = [one for one in launches if one is not None]
    of_all = [parallelism(one.samples) for one in [one for one in present if not one.contended] or present]
    return _median_of([value for value in of_all if value is not None])


def _canary_s(process: LaunchRecord) -> float | None:
    """The speed of the core that timed the variants; None of a device that works by itself, whose clock is another."""
    found = _find_canary(process)
    return None if found is None else found[1]


def _find_canary(process: LaunchRecord) -> tuple[str, float] | None:
    """The canary that times are divided by: its identity, and its median beside the blocks of the process.

    Where it does not stand beside all of them, as in records of before it did, the median of its samples, which is
    another measure.
    """
    by_name = {canary.name: canary for canary in process.canaries}
    if DEVICE in by_name or ALU not in by_name:
        return None
    identity, samples_s = by_name[ALU].identity, by_name[ALU].samples_s
    beside = [block.canary_s for item in process.variants for block in item.blocks]
    known = [one for one in beside if one is not None and SHORTEST_S <= one <= LONGEST_S]
    if known and len(known) == len(beside):
        return identity + BESIDE, statistics.median(known)
    median_s = _median_of([one for one in samples_s if SHORTEST_S <= one <= LONGEST_S])
    return None if median_s is None else (identity, median_s)


def _find_identity(present: Iterable[_Timed]) -> str | None:
    """What all launches have had as their canary; None where one had none or another."""
    found = {_find_canary(one.process) for one in present}
    identities = {None if one is None else one[0] for one in found}
    return identities.pop() if len(identities) == 1 else None


def _describe_compiling(launches: Sequence[VariantLaunch]) -> Iterator[str]:
    """Say how many programs a call compiles, if any."""
    counts = [one.compiles_per_call for one in launches]
    if not any(counts):
        return
    least, most = min(counts), max(counts)
    number = counted(most, "program") if least == most else f"{least} to {counted(most, 'program')}"
    yield f"compiles {number} a call: its time includes compiling, without a persistent cache"


def _describe_alternation(values: dict[str, tuple[Number | None, ...]]) -> Iterator[str]:
    """What alternating costs the variant, where that is beyond doubt."""
    pairs = zip(values["execution_s"], values["solo_s"], strict=True)
    known = [(one, alone) for one, alone in pairs if one is not None and alone is not None and one > 0 < alone]
    if not known:
        return
    beside_s, alone_s = (statistics.median(side) for side in zip(*known, strict=True))
    ratio = speedup([math.log(one / alone) for one, alone in known])
    if beside_s > SHORTEST_ALTERNATED_S and ratio.estimate > 1 and differs(ratio, minimum_effect=ALTERNATION_EFFECT):
        yield (
            f"{1e3 * beside_s:.3g} ms a call beside the other variants, {1e3 * alone_s:.3g} ms alone: in calls over 1 "
            "ms the caches hold the other variant's data at first"
        )


def _median(block: Block) -> float:
    return statistics.median(block.samples_s)


def _median_of(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None
