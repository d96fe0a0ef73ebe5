"""How long a call takes: variants alternate inside one launch, so that a moment's disturbance hits all of them."""

from __future__ import annotations

import gc
import random
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack, closing

import jax

from harness.machine.affinity import has_several_cores, on_drawn_cores
from harness.machine.disturbance import Disturbance, ReadDisturbance, Reading
from harness.machine.environment import make_private, paid_cores
from harness.machine.states import DeviceStates
from harness.plan.timing_process import DISPATCH_LAUNCHES, SOLO_BLOCKS, SOLO_LAUNCHES, SOLO_S, count_sweeps
from harness.probes.canary import TakeCanary, make_canaries, take_none
from harness.probes.context import Beat, Context, Findings
from harness.probes.elsewhere import Elsewhere, Meeting, Side, SideError, meet, sum_cpu_s
from harness.probes.look_at_each import LONGEST_REASON, describe_failure
from harness.probes.subject import Subject
from harness.programs.arguments import hash_arguments, pack_numbers
from harness.programs.modes import Clock, Prepared
from harness.record import (
    SCHEMA_VERSION,
    LaunchRecord,
    Load,
    Outcome,
    Settings,
    Status,
    VariantLaunch,
    now,
)

Between = Callable[[int], None]
"""What is looked at beside the variants: called after every second sweep, with its number."""

DrawCores = Callable[[random.Random], AbstractContextManager[None]]
"""Where each thread is kept on a core that is drawn."""


def look(variants: tuple[str, ...], context: Context) -> Findings:
    """Prepares all variants and times them alternately; or, where one cannot be called, says of that one why not."""
    with ExitStack() as stack:
        try:
            return _look(variants, context, stack)
        except SideError as error:
            # Of the variant that is at work there; where none is yet, of all that the earlier environment should run.
            elsewhere = context.find_elsewhere(variants)
            names = [context.variant] if context.variant in elsewhere else _list_before(elsewhere)
            where = elsewhere[names[0]][0]
            return Findings({name: _describe_failure_there(error, where) for name in names})


def _look(variants: tuple[str, ...], context: Context, stack: ExitStack) -> Findings:
    prepared: dict[str, Prepared | Elsewhere] = {}
    elsewhere = context.find_elsewhere(variants)
    meetings = {side: _meet(side, context, stack) for side in dict.fromkeys(side for side, _ in elsewhere.values())}
    for variant in variants:
        context.variant = variant
        if variant in elsewhere:
            side, there = elsewhere[variant]
            context.stage("prepare in lock-step")
            prepared[variant] = meetings[side].prepare(there)
            continue
        context.stage("prepare")
        try:
            own = context.prepare(variant)
            context.stage("first call")
            own.reset()
            own.wait(own.call(*own.args))
        except Exception as error:  # noqa: BLE001  a suite's code may raise anything, and that is a result
            return Findings({variant: describe_failure(error, context.at)})
        prepared[variant] = own
    return Findings(launch=time_launch(prepared, context))


def _meet(side: Side, context: Context, stack: ExitStack) -> Meeting:
    """A process of one environment, with the same inputs.

    Raises:
      SideError: There is none.
    """
    context.variant = None
    context.stage("inputs in lock-step")
    if context.sides is None:
        raise SideError("this process was not told where it is")
    meeting = stack.enter_context(meet(context.sides[side]))
    todays = hash_arguments(context.arguments)
    if meeting.inputs != todays:  # jax.random need not draw the same in another version
        meeting.give_inputs(pack_numbers(context.arguments))
    if meeting.inputs != todays:
        raise SideError("its inputs are others than today's")
    return meeting


def _list_before(elsewhere: Mapping[str, tuple[Side, str]]) -> list[str]:
    return [name for name, (side, _) in elsewhere.items() if side is Side.BEFORE]


def _describe_failure_there(error: SideError, side: Side) -> Outcome:
    reason = make_private(f"in {side}: {error}")
    return Outcome(status=Status.FAILED, reason=reason[:LONGEST_REASON])


def time_launch(prepared: Mapping[str, Prepared | Elsewhere], context: Context) -> LaunchRecord:
    """Raw samples of variants that alternate in this process, and of what tells how fast it was meanwhile."""
    if context.case is None or context.settings is None:
        raise ValueError("timing needs the planned case, and the settings of the run")
    started = now()
    on_device = any(one.dispatches for one in prepared.values())
    used = jax.local_devices()[: context.case.devices] if on_device else []
    ordinals = [device.local_hardware_id for device in used]
    canaries = make_canaries(context.place, context.clock, alone=len(prepared) == 1, on_device=on_device)
    with closing(Disturbance()) as disturbance, closing(DeviceStates(context.place.state_library, ordinals)) as states:

        def between(sweep: int) -> None:
            states.take(sweep)  # before anything else runs there
            canaries.take_between()

        before, start, elsewhere_s = disturbance(), context.clock(), sum_cpu_s(prepared.values())
        timed = measure(
            prepared,
            context.settings,
            seed=context.seed,
            clock=context.clock,
            disturbance=disturbance,
            cores=paid_cores(),
            beat=context.name,
            between=between,
            canary=canaries.take_beside,
            draw_cores=on_drawn_cores if context.place.is_host and has_several_cores() else None,
            solo=context.index < SOLO_LAUNCHES,
            dispatch=context.index < DISPATCH_LAUNCHES,
        )
        elsewhere_s = sum_cpu_s(prepared.values()) - elsewhere_s
        load = _describe_load(before, disturbance(), context.clock() - start, elsewhere_s)
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


def _describe_load(before: Reading, after: Reading, wall_s: float, elsewhere_s: float) -> Load:
    """What this process, that with which it takes turns, and the machine did meanwhile."""
    return Load(
        wall_s=wall_s,
        cpu_s=after.cpu_s + after.readings_s - before.cpu_s - before.readings_s + elsewhere_s,
        machine_s=after.since(before, "machine_s"),
        steal_s=after.since(before, "steal_s"),
        throttled_s=after.since(before, "throttled_s"),
    )


def _nothing(sweep: int) -> None:
    """Nothing is looked at beside the variants."""


def measure(
    variants: Mapping[str, Prepared | Elsewhere],
    settings: Settings,
    *,
    seed: int,
    clock: Clock,
    disturbance: ReadDisturbance,
    cores: float,
    beat: Beat,
    between: Between = _nothing,
    canary: TakeCanary = take_none,
    draw_cores: DrawCores | None = None,
    solo: bool = True,
    dispatch: bool = True,
) -> tuple[VariantLaunch, ...]:
    """Times variants alternately, in sweeps of one block each: a shuffled order, then its reverse, and so on.

    Args:
      variants: Name -> prepared call, already compiled; or one that another environment runs.
      seed: Of the orders.
      clock: Seconds, e.g. `time.perf_counter`.
      disturbance: Reads the process's counters, before and after each block.
      cores: Cores that the process can use.
      beat: Told what begins.
      canary: Taken before and after each block.
      draw_cores: Within it each quick variant is called once, before every second sweep. Where a program's threads wake
        up decides how long it takes, by up to twice, and without it they wake up where they ran before, for the whole
        launch.
      solo: Whether each is timed alone as well, after the sweeps.
      dispatch: Whether it is timed how long a call takes to return, last of all.
    Returns:
      Raw samples of each variant, seconds per call, in the order given.
    """
    subjects = {
        name: one if isinstance(one, Elsewhere) else Subject(one, clock, settings.sample_s, settings.settle_s)
        for name, one in variants.items()
    }
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
        sweeps = min(sweeps, _most_sweeps(variants.values()))
        # In few sweeps as long as in all: where one variant is slow, the others must have enough blocks all the same.
        block_s = max(settings.block_s, settings.blocks * settings.block_s / sweeps)
        order = list(subjects)
        for sweep in range(0, sweeps, 2):
            if draw_cores is not None:
                with draw_cores(orders):
                    for subject in subjects.values():
                        subject.stir(settings.block_s)
            orders.shuffle(order)
            for number, names in ((sweep, order), (sweep + 1, order[::-1])):
                for name in names:
                    beat(name, "timing")
                    subjects[name].take_block(number, block_s, disturbance, canary)
            between(sweep + 1)
        for name, subject in subjects.items():
            is_limited = isinstance(subject, Subject) and subject.is_limited
            if solo and not is_limited and len(subjects) > 1 and SOLO_BLOCKS * _block_s(subject, settings) <= SOLO_S:
                beat(name, "solo")
                subject.take_solos(SOLO_BLOCKS, settings.block_s)
        for name, subject in subjects.items():
            if dispatch and subject.dispatches:
                beat(name, "dispatch")
                subject.take_dispatches()
    finally:
        if collecting:
            gc.enable()
    return tuple(subject.record(name, cores) for name, subject in subjects.items())


def _most_sweeps(variants: Iterable[Prepared | Elsewhere]) -> int:
    """As many sweeps, an even number, as the variants may be called; two more calls come before and one after."""
    limits = [one.most_calls for one in variants if isinstance(one, Prepared) and one.most_calls is not None]
    return max(2, 2 * ((min(limits) - 3) // 2)) if limits else sys.maxsize


def _block_s(subject: Subject | Elsewhere, settings: Settings) -> float:
    """How long a block takes at least: one sample, if that is longer than a block."""
    return max(settings.block_s, subject.call_s * subject.calls)
