"""From one process's raw samples to one value per metric; disturbed blocks and contended processes. No jax."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from jaxmeter.document import numbers
from jaxmeter.harness.metrics.plausibility import LONGEST_S, SHORTEST_S
from jaxmeter.harness.metrics.statistics import (
    ALTERNATION_EFFECT,
    COUNTED_WITHIN_S,
    FEWEST_CLEAN_BLOCKS,
    FEWEST_CLEAN_S,
    FEWEST_CLEAN_SHARE,
    FEWEST_PROCESSES,
    FULL_SPEED_SHARE,
    LARGEST_LOSS,
    LARGEST_OTHERS,
    MOST_SLOW_STATES,
    SHORTEST_ALTERNATED_S,
    SLOW_SPELL_S,
    SLOWED,
    SLOWEST_CLOCK,
    UNEQUALLY_PARALLEL,
    agree,
    clean_blocks,
    differs,
    find_block_time,
    lost_share,
    paired_log_ratio,
    speedup,
)
from jaxmeter.harness.record.outcomes import Number, Outcome, Status, TimingDetails
from jaxmeter.harness.record.processes import ALU, DEVICE, IDLE, Block, DeviceState, Load, ProcessRecord, VariantSamples
from jaxmeter.harness.record.wording import counted

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


@dataclass(frozen=True)
class _Timed:
    """One variant in one process, with the process that timed it."""

    process: ProcessRecord
    samples: VariantSamples
    contended: bool


def summarise(rounds: Sequence[Sequence[ProcessRecord]], variant: str, baseline: str) -> Outcome:
    """Return one variant's timing over all processes.

    Args:
      rounds: By round, its processes: one for JAX's variants, one per peer.
    Returns:
      execution_s, over_calibration, return_s, isolated_s, pipelined_s, pipelined_speedup, parallelism, calibration_s
      and log_ratio with one value per process, null where the process lacks the variant. If enough clean processes
      remain, contended ones have only calibration_s, which is of the machine, pipelined_speedup and log_ratio. A
      log_ratio is left out only if its two variants lost unequally, and pipelined_speedup never.
    """
    own = [_find(processes, variant) for processes in rounds]
    base = [_find(processes, baseline) for processes in rounds]
    trusted = _list_trusted(own)
    values: dict[str, tuple[Number | None, ...]] = {
        "execution_s": _map(lambda timed: execution_s(timed.samples, timed.process), trusted),
        "over_calibration": _map(lambda timed: over_calibration(timed.samples, timed.process), trusted),
        "return_s": _map(lambda timed: _median_of(timed.samples.return_s), trusted),
        "isolated_s": _map(lambda timed: _median_of(timed.samples.isolated_s), trusted),
        "pipelined_s": _map(lambda timed: _median_of(timed.samples.queued_s), trusted),
        "pipelined_speedup": _map(lambda timed: pipelined_speedup(timed.samples), own),
        "parallelism": _map(lambda timed: parallelism(timed.samples), trusted),
        "calibration_s": _map(lambda timed: _calibration_s(timed.process), own),
    }
    doubtful_ratios = False
    if variant != baseline and any(base):
        values["log_ratio"], doubtful_ratios = _log_ratios(own, base)
    present = [timed for timed in own if timed is not None]
    details = TimingDetails(
        processes=len(present),
        contended=sum(timed.contended for timed in present),
        doubtful_ratios=doubtful_ratios,
        unsteady=sum(not timed.samples.steady for timed in present),
        calibration=_find_identity(present),
        slow_share=find_slow_share([timed.process for timed in present]),
        compiles_per_call=max((timed.samples.compiles_per_call for timed in present), default=0),
    )
    used = {name: by_process for name, by_process in values.items() if name in _ALWAYS or _count(by_process)}
    notes = (*_describe_compiling([timed.samples for timed in present]), *_describe_alternation(values))
    return Outcome(status=Status.OK, values=used, notes=notes, details=details)


BESIDE = ", beside each block"
"""Suffix of a calibration loop's identity if it runs next to each block: times over such a loop are another measure."""

_ALWAYS = frozenset({"execution_s", "return_s", "log_ratio"})
"""Values that an outcome has even if no process has any."""


def execution_s(samples: VariantSamples, process: ProcessRecord) -> float:
    """Return the median over a process's quiet blocks, or over all its blocks if it is contended."""
    return statistics.median(_list_times(_list_counted(samples, process)))


def over_calibration(samples: VariantSamples, process: ProcessRecord) -> float | None:
    """Return the median over the same blocks of their time over the calibration loop next to them, or None without it.

    A block that is longer than a slow period of a core is divided by the median of the process instead. The two
    calibration loops at its ends are not representative of it.
    """
    calibration = _find_calibration(process)
    if calibration is None:
        return None
    _, usual_s = calibration
    return statistics.median(
        find_block_time(block.samples_s)
        / (block.calibration_s if block.calibration_s and block.wall_s <= SLOW_SPELL_S else usual_s)
        for block in _list_counted(samples, process)
    )


def pipelined_speedup(samples: VariantSamples) -> float | None:
    """Return the median over the passes of a call's time in a row over its time in a queue; None without queues."""
    pairs = zip(samples.waited_s, samples.queued_s, strict=False)
    return _median_of([waited_s / queued_s for waited_s, queued_s in pairs])


def _list_times(blocks: Sequence[Block]) -> list[float]:
    return [find_block_time(block.samples_s) for block in blocks]


def _list_counted(samples: VariantSamples, process: ProcessRecord) -> Sequence[Block]:
    return samples.blocks if contended(samples, process) else quiet(samples, process)


def parallelism(samples: VariantSamples) -> float | None:
    """Processor time over wall time of the blocks; None where no time passed."""
    wall_s = sum(block.wall_s for block in samples.blocks)
    return sum(block.cpu_s for block in samples.blocks) / wall_s if wall_s > 0 else None


def _find(processes: Sequence[ProcessRecord], variant: str) -> _Timed | None:
    for process in processes:
        for item in process.variants:
            if item.variant == variant:
                return _Timed(process, item, contended(item, process))
    return None


def _list_trusted(own: Sequence[_Timed | None]) -> list[_Timed | None]:
    """The clean processes alone where there are enough of them, else all."""
    clean = [None if timed is None or timed.contended else timed for timed in own]
    return clean if stand_alone(_count(clean), _count(own)) else list(own)


def _map(read: Callable[[_Timed], Number | None], processes: Sequence[_Timed | None]) -> tuple[Number | None, ...]:
    """Return one value per process, None where the process lacks the variant."""
    return tuple(None if timed is None else read(timed) for timed in processes)


def _count(processes: Iterable[object | None]) -> int:
    return sum(process is not None for process in processes)


def _log_ratios(own: Sequence[_Timed | None], base: Sequence[_Timed | None]) -> tuple[tuple[float | None, ...], bool]:
    """By process, and whether there is one that cannot be trusted: those are left out where enough others remain."""
    pairs = list(zip(own, base, strict=True))
    ratios = [None if mine is None or theirs is None else _log_ratio(mine, theirs) for mine, theirs in pairs]
    equal = _equally_parallel(own, base)
    trusted = [
        None
        if mine is None
        or theirs is None
        or ((mine.contended or theirs.contended) and not (equal and _paired(mine, theirs)))
        else ratio
        for ratio, (mine, theirs) in zip(ratios, pairs, strict=True)
    ]
    if stand_alone(_count(trusted), _count(ratios)):
        return tuple(trusted), False
    return tuple(ratios), _count(trusted) < _count(ratios)


def _log_ratio(own: _Timed, base: _Timed) -> float:
    """Paired by the pass within one process; of two, that of the times over the calibration loop beside each block.

    A machine may have two speeds for minutes, and two processes may meet one each. Without one calibration loop in
    both, the times' own ratio.
    """
    if _paired(own, base):
        return paired_log_ratio(_list_times(base.samples.blocks), _list_times(own.samples.blocks))
    above, below = (over_calibration(timed.samples, timed.process) for timed in (base, own))
    if above is None or below is None or _find_identity([own, base]) is None:
        above, below = (execution_s(timed.samples, timed.process) for timed in (base, own))
    return math.log(above / below)


def _paired(own: _Timed, base: _Timed) -> bool:
    """Whether a busy moment hits both."""
    return own.process is base.process


def _equally_parallel(own: Sequence[_Timed | None], base: Sequence[_Timed | None]) -> bool:
    """Whether both lose alike where a core is taken away; by their clean processes, since contended ones look alike."""
    own_usual, base_usual = _usual_parallelism(own), _usual_parallelism(base)
    return own_usual is None or base_usual is None or agree(own_usual, base_usual, within=UNEQUALLY_PARALLEL)


def _usual_parallelism(processes: Sequence[_Timed | None]) -> float | None:
    present = [timed for timed in processes if timed is not None]
    clean = [timed for timed in present if not timed.contended]
    return _median_of([value for timed in clean or present if (value := parallelism(timed.samples)) is not None])


def _calibration_s(process: ProcessRecord) -> float | None:
    """The speed of the core that timed the variants; None of a device that works by itself, whose clock is another."""
    calibration = _find_calibration(process)
    return None if calibration is None else calibration[1]


def _find_calibration(process: ProcessRecord) -> tuple[str, float] | None:
    """Return the calibration loop that times are divided by: its identity, and its median next to the process's blocks.

    Return None if it was not timed next to each of them.
    """
    identities = {calibration.name: calibration.identity for calibration in process.calibrations}
    if DEVICE in identities or ALU not in identities:
        return None
    beside = [block.calibration_s for item in process.variants for block in item.blocks]
    known = [loop_s for loop_s in beside if loop_s is not None and SHORTEST_S <= loop_s <= LONGEST_S]
    if not known or len(known) < len(beside):
        return None
    return identities[ALU] + BESIDE, statistics.median(known)


def _find_identity(present: Iterable[_Timed]) -> str | None:
    """What all processes have had as their calibration loop; None where one had none or another."""
    calibrations = {_find_calibration(timed.process) for timed in present}
    identities = {None if calibration is None else calibration[0] for calibration in calibrations}
    return identities.pop() if len(identities) == 1 else None


def _describe_compiling(processes: Sequence[VariantSamples]) -> Iterator[str]:
    """Say how many programs a call compiles, if any."""
    counts = [samples.compiles_per_call for samples in processes]
    if not any(counts):
        return
    least, most = min(counts), max(counts)
    number = counted(most, "program") if least == most else f"{least} to {counted(most, 'program')}"
    yield f"compiles {number} a call: its time includes compiling, without a persistent cache"


def _describe_alternation(values: dict[str, tuple[Number | None, ...]]) -> Iterator[str]:
    """What alternating costs the variant, where that is beyond doubt."""
    pairs = zip(values["execution_s"], values["isolated_s"], strict=True)
    known = [(mixed, alone) for mixed, alone in pairs if mixed is not None and alone is not None and mixed > 0 < alone]
    if not known:
        return
    mixed_s, alone_s = (statistics.median(side) for side in zip(*known, strict=True))
    ratio = speedup([math.log(mixed / alone) for mixed, alone in known])
    if mixed_s > SHORTEST_ALTERNATED_S and ratio.estimate > 1 and differs(ratio, minimum_effect=ALTERNATION_EFFECT):
        yield (
            f"{numbers.time(mixed_s)} a call interleaved with the other variants, {numbers.time(alone_s)} alone: in "
            "calls over 1 ms the caches hold the other variant's data at first"
        )


def _median_of(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None
