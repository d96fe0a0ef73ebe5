"""How long a call takes: variants alternate inside one launch, so that a moment's disturbance hits all of them."""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Mapping
from contextlib import closing

import jax

from harness.machine.disturbance import Disturbance, ReadDisturbance, Reading
from harness.machine.environment import paid_cores
from harness.machine.states import DeviceStates
from harness.plan.timing_process import SOLO_BLOCKS, SOLO_LAUNCHES, SOLO_S, count_sweeps
from harness.probes.canary import Canaries, make_works
from harness.probes.context import Beat, Context, Findings
from harness.probes.look_at_each import describe_failure
from harness.probes.subject import Subject
from harness.programs.modes import Clock, Prepared
from harness.record import SCHEMA_VERSION, LaunchRecord, Load, Settings, VariantLaunch, now

Between = Callable[[int], None]
"""What is looked at beside the variants: called after every second sweep, with its number."""


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
    """Raw samples of variants that alternate in this process, and of what tells how fast it was meanwhile."""
    if context.case is None or context.settings is None:
        raise ValueError("timing needs the planned case, and the settings of the run")
    started = now()
    on_device = any(one.dispatches for one in prepared.values())
    used = jax.local_devices()[: context.case.devices] if on_device else []
    ordinals = [device.local_hardware_id for device in used]
    works = make_works(context.place, alone=len(prepared) == 1, on_device=on_device)
    with closing(Disturbance()) as disturbance, closing(DeviceStates(context.place.state_library, ordinals)) as states:
        canaries = Canaries(works, context.clock)

        def between(sweep: int) -> None:
            states.take(sweep)  # before anything else runs there
            canaries.take()

        before, start = disturbance(), context.clock()
        timed = measure(
            prepared,
            context.settings,
            seed=context.seed,
            clock=context.clock,
            disturbance=disturbance,
            cores=paid_cores(),
            beat=context.beat,
            between=between,
            solo=context.index < SOLO_LAUNCHES,
        )
        load = _describe_load(before, disturbance(), context.clock() - start)
    return LaunchRecord(
        schema_version=SCHEMA_VERSION,
        case=context.case.id,
        index=context.index,
        seed=context.seed,
        started=started,
        variants=timed,
        canaries=canaries.record(),
        device_states=tuple(states.taken),
        load=load,
    )


def _describe_load(before: Reading, after: Reading, wall_s: float) -> Load:
    return Load(
        wall_s=wall_s,
        cpu_s=after.cpu_s + after.readings_s - before.cpu_s - before.readings_s,
        machine_s=after.since(before, "machine_s"),
        steal_s=after.since(before, "steal_s"),
        throttled_s=after.since(before, "throttled_s"),
    )


def _nothing(sweep: int) -> None:
    """Nothing is looked at beside the variants."""


def measure(
    variants: Mapping[str, Prepared],
    settings: Settings,
    *,
    seed: int,
    clock: Clock,
    disturbance: ReadDisturbance,
    cores: float,
    beat: Beat,
    between: Between = _nothing,
    solo: bool = True,
) -> tuple[VariantLaunch, ...]:
    """Times variants alternately, in sweeps of one block each: a shuffled order, then its reverse, and so on.

    Args:
      variants: Name -> prepared call, already compiled.
      seed: Of the orders.
      clock: Seconds, e.g. `time.perf_counter`.
      disturbance: Reads the process's counters, before and after each block.
      cores: Cores that the process can use.
      beat: Told what begins.
      solo: Whether each is timed alone as well, after the sweeps.
    Returns:
      Raw samples of each variant, seconds per call, in the order given.
    """
    subjects = {name: Subject(prepared, clock, settings.sample_s) for name, prepared in variants.items()}
    orders = random.Random(seed)
    collecting = gc.isenabled()
    gc.collect()
    gc.disable()  # a collection would land in one variant's block; timeit does the same
    try:
        for name, subject in subjects.items():
            beat(name, "warm-up")
            subject.calibrate()
            beat(name, "warm-up")
            subject.warm_up()
        sweeps = count_sweeps([_block_s(subject, settings) for subject in subjects.values()], settings)
        # In few sweeps as long as in all: where one variant is slow, the others must have enough blocks all the same.
        block_s = max(settings.block_s, settings.blocks * settings.block_s / sweeps)
        order = list(subjects)
        for sweep in range(0, sweeps, 2):
            orders.shuffle(order)
            for number, names in ((sweep, order), (sweep + 1, order[::-1])):
                for name in names:
                    beat(name, "timing")
                    subjects[name].take_block(number, block_s, disturbance)
            between(sweep + 1)
        for name, subject in subjects.items():
            if solo and len(subjects) > 1 and SOLO_BLOCKS * _block_s(subject, settings) <= SOLO_S:
                beat(name, "solo")
                subject.take_solos(SOLO_BLOCKS, settings.block_s)
        for name, subject in subjects.items():
            if subject.prepared.dispatches:
                beat(name, "dispatch")
                subject.take_dispatches()
    finally:
        if collecting:
            gc.enable()
    return tuple(subject.record(name, cores) for name, subject in subjects.items())


def _block_s(subject: Subject, settings: Settings) -> float:
    """How long a block takes at least: one sample, if that is longer than a block."""
    return max(settings.block_s, subject.call_s * subject.calls)
