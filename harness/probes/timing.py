"""How long a call takes: variants alternate inside one launch, so that a moment's disturbance hits all of them."""

from __future__ import annotations

import gc
import itertools
import random
import statistics
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from harness.machine.disturbance import Disturbance, ReadDisturbance, Reading
from harness.machine.environment import allowed_cores
from harness.probes.context import Beat, Context, Findings
from harness.probes.look_at_each import describe_failure
from harness.programs.modes import Clock, Prepared
from harness.record import SCHEMA_VERSION, Block, LaunchRecord, Settings, VariantLaunch, now
from harness.record.statistics import agree
from harness.record.timing_summary import enough_undisturbed

FEWEST_SWEEPS = 6
"""Three shuffled orders, each with its reverse: one more than the blocks that a clean launch needs."""

SWEEPS_S_PER_VARIANT = 0.25
"""Time for one variant's blocks in a launch, beyond which sweeps are cut to the fewest."""

EXTENSION = 3
"""Sweeps go on up to so many times the planned number (and time) while the machine is busy: the scatter of the ratios
falls with the root of their number, and an undisturbed stretch may still come."""

WARM_UP_S = 0.05
WARM_UP_LIMIT_S = 1.0
WARM_UP_BLOCK_S = 0.005

STEADY_WITHIN = 0.05
MOST_CALLS = 1_000_000
DISPATCH_SAMPLES = (3, 50)
DISPATCH_S = 0.02


@dataclass
class _Subject:
    """One variant while it is measured."""

    prepared: Prepared
    calls: int = 1
    call_s: float = 0.0
    warmup_s: list[float] = field(default_factory=list)
    steady: bool = False
    blocks: list[Block] = field(default_factory=list)
    dispatch_s: list[float] = field(default_factory=list)


def look(variants: tuple[str, ...], context: Context) -> Findings:
    """Prepares all variants and times them alternately; or, where one cannot be called, says of that one why not."""
    prepared = {}
    for variant in variants:
        context.variant = variant
        context.stage("prepare")
        try:
            prepared[variant] = context.prepare(variant)
            context.stage("first call")
            prepared[variant].reset()
            prepared[variant].wait(prepared[variant].call(*prepared[variant].args))
        except Exception as error:  # noqa: BLE001  a suite's code may raise anything, and that is a result
            return Findings({variant: describe_failure(error, context.at)})
    return Findings(launch=time_launch(prepared, context))


def time_launch(prepared: Mapping[str, Prepared], context: Context) -> LaunchRecord:
    """Raw samples of variants that alternate in this process."""
    if context.case is None or context.settings is None:
        raise ValueError("timing needs the planned case, and the settings of the run")
    started = now()
    with closing(Disturbance()) as disturbance:
        timed = measure(
            prepared,
            context.settings,
            seed=context.seed,
            clock=context.clock,
            disturbance=disturbance,
            cores=allowed_cores(),
            beat=context.beat,
        )
    return LaunchRecord(
        schema_version=SCHEMA_VERSION,
        case=context.case.id,
        index=context.index,
        seed=context.seed,
        started=started,
        variants=timed,
    )


def measure(
    variants: Mapping[str, Prepared],
    settings: Settings,
    *,
    seed: int,
    clock: Clock,
    disturbance: ReadDisturbance,
    cores: int,
    beat: Beat,
) -> tuple[VariantLaunch, ...]:
    """Times variants alternately, in sweeps of one block each: a shuffled order, then its reverse, and so on.

    Args:
      variants: Name -> prepared call, already compiled.
      seed: Of the orders.
      clock: Seconds, e.g. `time.perf_counter`.
      disturbance: Reads the process's counters, before and after each block.
      cores: Cores that the process may use.
      beat: Told what begins.
    Returns:
      Raw samples of each variant, seconds per call, in the order given.
    """
    subjects = {name: _Subject(prepared) for name, prepared in variants.items()}
    orders = random.Random(seed)
    collecting = gc.isenabled()
    gc.collect()
    gc.disable()  # a collection would land in one variant's block; timeit does the same
    try:
        for name, subject in subjects.items():
            beat(name, "warm-up")
            _calibrate(subject, settings, clock)
            beat(name, "warm-up")
            _warm_up(subject, settings, clock)
        planned = _sweeps(subjects.values(), settings)
        longest_s = EXTENSION * SWEEPS_S_PER_VARIANT * len(subjects)
        sweep, start, before = 0, clock(), disturbance()
        while sweep < planned or (
            sweep < EXTENSION * planned and clock() - start < longest_s and _disturbed(subjects, cores)
        ):
            order = list(subjects)
            orders.shuffle(order)
            for names in (order, order[::-1]):
                for name in names:
                    beat(name, "timing")
                    block, before = _block(subjects[name], sweep, settings, clock, before, disturbance)
                    subjects[name].blocks.append(block)
                sweep += 1
        for name, subject in subjects.items():
            if subject.prepared.dispatches:
                beat(name, "dispatch")
                _measure_dispatch(subject, clock)
    finally:
        if collecting:
            gc.enable()
    return tuple(
        VariantLaunch(
            variant=name,
            cores=cores,
            calls=subject.calls,
            warmup_s=tuple(subject.warmup_s),
            steady=subject.steady,
            blocks=tuple(subject.blocks),
            dispatch_s=tuple(subject.dispatch_s),
        )
        for name, subject in subjects.items()
    )


def sample(prepared: Prepared, calls: int, clock: Clock) -> float:
    """Seconds per call over `calls` calls, each waited for."""
    call, args, wait = prepared.call, prepared.args, prepared.wait
    numbers = itertools.repeat(None, calls)
    start = clock()
    for _ in numbers:
        wait(call(*args))
    return (clock() - start) / calls


def _calibrate(subject: _Subject, settings: Settings, clock: Clock) -> None:
    """Finds how many calls make a sample of `settings.sample_s`; the first call is not looked at."""
    sample(subject.prepared, 1, clock)
    while True:
        subject.call_s = sample(subject.prepared, subject.calls, clock)
        if subject.call_s * subject.calls >= settings.sample_s or subject.calls >= MOST_CALLS:
            return
        wanted = settings.sample_s / subject.call_s if subject.call_s > 0 else MOST_CALLS
        subject.calls = min(MOST_CALLS, max(2 * subject.calls, int(wanted) + 1))


def _warm_up(subject: _Subject, settings: Settings, clock: Clock) -> None:
    """Runs until two blocks in a row agree and WARM_UP_S have passed; gives up after WARM_UP_LIMIT_S."""
    start = clock()
    while not subject.steady and (clock() - start < WARM_UP_LIMIT_S or len(subject.warmup_s) < 2):
        subject.warmup_s.append(statistics.median(_samples(subject, WARM_UP_BLOCK_S, clock)))
        if clock() - start >= WARM_UP_S and len(subject.warmup_s) >= 2:
            subject.steady = agree(*subject.warmup_s[-2:], within=STEADY_WITHIN)
    subject.call_s = subject.warmup_s[-1]
    if subject.call_s > 0:  # the first samples may have been slow, and the number of calls too small
        subject.calls = min(MOST_CALLS, max(subject.calls, int(settings.sample_s / subject.call_s)))


def _samples(subject: _Subject, duration_s: float, clock: Clock) -> list[float]:
    samples: list[float] = []
    start = clock()
    while not samples or clock() - start < duration_s:
        samples.append(sample(subject.prepared, subject.calls, clock))
    return samples


def _sweeps(subjects: Any, settings: Settings) -> int:
    """An even number: `settings.blocks`, or fewer for slow calls, and never fewer than FEWEST_SWEEPS."""
    blocks_s = [max(settings.block_s, subject.call_s * subject.calls) for subject in subjects]
    affordable = SWEEPS_S_PER_VARIANT * len(blocks_s) / sum(blocks_s)
    return max(FEWEST_SWEEPS, 2 * (min(settings.blocks, int(affordable)) // 2))


def _disturbed(subjects: Mapping[str, _Subject], cores: int) -> bool:
    return not all(enough_undisturbed(subject.blocks, cores) for subject in subjects.values())


def _block(
    subject: _Subject, sweep: int, settings: Settings, clock: Clock, before: Reading, disturbance: ReadDisturbance
) -> tuple[Block, Reading]:
    """One block, and the reading at its end, which begins the next."""
    subject.prepared.reset()
    start = clock()
    samples = _samples(subject, settings.block_s, clock)
    wall_s, after = clock() - start, disturbance()
    block = Block(
        sweep=sweep,
        samples_s=tuple(samples),
        wall_s=wall_s,
        wait_s=_passed(before, after, "wait_s"),
        cpu_s=after.cpu_s - before.cpu_s,
        steal_s=_passed(before, after, "steal_s"),
        involuntary_switches=after.involuntary_switches - before.involuntary_switches,
    )
    return block, after


def _passed(before: Reading, after: Reading, name: str) -> float | None:
    first, last = getattr(before, name), getattr(after, name)
    # A thread that ended took its counter with it.
    return None if first is None or last is None else max(0.0, last - first)


def _measure_dispatch(subject: _Subject, clock: Clock) -> None:
    """Times single calls until they return, each waited for before the next begins."""
    fewest, most = DISPATCH_SAMPLES
    call, args, wait = subject.prepared.call, subject.prepared.args, subject.prepared.wait
    affordable = int(DISPATCH_S / subject.call_s) if subject.call_s > 0 else most
    for _ in range(max(fewest, min(most, affordable))):
        start = clock()
        result = call(*args)
        subject.dispatch_s.append(clock() - start)
        wait(result)
