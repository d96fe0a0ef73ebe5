"""How long a call takes: variants alternate inside one process, so that a moment's interference hits all of them."""

from __future__ import annotations

import gc
import random
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass

import jax

from jaxmeter.harness.machine.environment import make_private, paid_cores
from jaxmeter.harness.machine.interference import (
    CounterReading,
    Interference,
    ReadInterference,
    has_several_cores,
    on_drawn_cores,
)
from jaxmeter.harness.machine.nvml import DeviceStates
from jaxmeter.harness.plan.processes import (
    ISOLATED,
    ISOLATED_BLOCKS,
    ISOLATED_S,
    LEAST_SAMPLED_S,
    QUEUE,
    QUEUE_PASSES,
    RETURN,
    SIDE_PROCESSES,
    count_passes,
    count_queued,
    is_among,
    share_passes,
)
from jaxmeter.harness.probes.calibration import TakeCalibration, make_calibrations, take_none
from jaxmeter.harness.probes.context import LONGEST_REASON, Beat, Context, Findings, describe_failure
from jaxmeter.harness.probes.remote import Arm, ArmError, Meeting, RemoteVariant, meet, sum_cpu_s
from jaxmeter.harness.probes.sampler import Sampler, Timed
from jaxmeter.harness.programs.arguments import hash_arguments, pack_numbers
from jaxmeter.harness.programs.modes import Clock, Prepared
from jaxmeter.harness.record import SCHEMA_VERSION, Load, Outcome, ProcessRecord, Settings, Status, VariantSamples, now

Between = Callable[[int], None]
"""Reads the machine's state in addition to the variants: called after every second pass, with its number."""

DrawCores = Callable[[random.Random], AbstractContextManager[None]]
"""Context in which each thread is kept on a random core."""


def probe_variants(variants: tuple[str, ...], context: Context) -> Findings:
    """Prepare all variants and time them alternately; for a variant that cannot be called, return why not."""
    with ExitStack() as stack:
        try:
            return _time_variants(variants, context, stack)
        except ArmError as error:
            # Of the variant that is at work there; where none is yet, of all that the earlier environment should run.
            remote = context.find_remote(variants)
            before = [name for name, (arm, _) in remote.items() if arm is Arm.BEFORE]
            names = [context.variant] if context.variant in remote else before
            where = remote[names[0]][0]
            return Findings({name: _describe_failure_there(error, where) for name in names})


def _time_variants(variants: tuple[str, ...], context: Context, stack: ExitStack) -> Findings:
    prepared: dict[str, Prepared | RemoteVariant] = {}
    remote = context.find_remote(variants)
    meetings = {arm: _meet(arm, context, stack) for arm in dict.fromkeys(arm for arm, _ in remote.values())}
    if meetings:
        _share_inputs(meetings.values(), context)
    for variant in random.Random(f"prepare {context.seed}").sample(variants, len(variants)):
        context.variant = variant
        if variant in remote:
            arm, there = remote[variant]
            context.stage("prepare in lock-step")
            prepared[variant] = meetings[arm].prepare(there)
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
    return Findings(process=time_process({variant: prepared[variant] for variant in variants}, context))


def _meet(arm: Arm, context: Context, stack: ExitStack) -> Meeting:
    """A process of one environment, which has made the inputs.

    Raises:
      ArmError: There is none.
    """
    context.variant = None
    context.stage("inputs in lock-step")
    if context.arms is None:
        raise ArmError("this process has no address of the other environment")
    return stack.enter_context(meet(context.arms[arm]))


def _share_inputs(meetings: Collection[Meeting], context: Context) -> None:
    """Give all environments this process's inputs, unless each has made the same.

    jax.random may draw other numbers in another version. All environments receive inputs in the same way, since arrays
    in other memory can take other times.

    Raises:
      ArmError: One cannot take them.
    """
    todays = hash_arguments(context.arguments)
    if any(meeting.inputs != todays for meeting in meetings):
        numbers = pack_numbers(context.arguments)
        for meeting in meetings:
            meeting.give_inputs(numbers)
    if any(meeting.inputs != todays for meeting in meetings):
        raise ArmError("its inputs are others than today's")


def _describe_failure_there(error: ArmError, arm: Arm) -> Outcome:
    reason = make_private(f"in {arm}: {error}")
    return Outcome(status=Status.FAILED, reason=reason[:LONGEST_REASON])


def time_process(prepared: Mapping[str, Prepared | RemoteVariant], context: Context) -> ProcessRecord:
    """Return raw samples of variants that are interleaved in this process, and of its calibration loops."""
    if context.case is None or context.settings is None:
        raise ValueError("timing needs the planned case, and the settings of the run")
    started = now()
    on_device = any(variant.returns_early for variant in prepared.values())
    used = jax.local_devices()[: context.case.devices] if on_device else []
    ordinals = [device.local_hardware_id for device in used]
    calibrations = make_calibrations(context.platform, context.clock, alone=len(prepared) == 1, on_device=on_device)
    with (
        closing(Interference()) as interference,
        closing(DeviceStates(context.platform.state_library, ordinals)) as states,
    ):

        def between(pass_number: int) -> None:
            states.take(pass_number)  # before anything else runs there
            calibrations.take_between()

        before, start, remote_s = interference(), context.clock(), sum_cpu_s(prepared.values())
        timed = InterleavedTiming(
            variants=prepared,
            settings=context.settings,
            seed=context.seed,
            clock=context.clock,
            interference=interference,
            cores=paid_cores(),
            beat=context.name,
            between=between,
            calibration=calibrations.take_beside,
            draw_cores=on_drawn_cores if context.platform.is_host and has_several_cores() else None,
            queued=context.case.queued or 0,
            sides=[side for side, processes in SIDE_PROCESSES.items() if context.index < processes],
            # With a fixed number of processes, the time of fewer passes would not go to more processes.
            begun_s=context.begun_s if context.settings.processes is None else None,
        ).measure()
        remote_s = sum_cpu_s(prepared.values()) - remote_s
        load = _describe_load(before, interference(), context.clock() - start, remote_s)
    return ProcessRecord(
        schema_version=SCHEMA_VERSION,
        case=context.case.id,
        index=context.index,
        seed=context.seed,
        started=started,
        variants=timed,
        calibrations=calibrations.record(),
        device_states=tuple(states.taken),
        load=load,
    )


def _describe_load(before: CounterReading, after: CounterReading, wall_s: float, remote_s: float) -> Load:
    """What this process, that with which it takes turns, and the machine did meanwhile."""
    return Load(
        wall_s=wall_s,
        cpu_s=after.cpu_s + after.readings_s - before.cpu_s - before.readings_s + remote_s,
        machine_s=after.since(before, "machine_s"),
        steal_s=after.since(before, "steal_s"),
        throttled_s=after.since(before, "throttled_s"),
    )


def _nothing(pass_number: int) -> None:
    """Read nothing in addition to the variants."""


@dataclass(kw_only=True)
class InterleavedTiming:
    """Variants, timed alternately in passes of one block each: a shuffled order, then its reverse, and so on.

    Args:
      variants: Name -> prepared call, already compiled; or a variant that another environment runs.
      seed: Seed of the orders.
      clock: Seconds, e.g. `time.perf_counter`.
      interference: Reads the process's counters, before and after each block.
      cores: Cores that the process can use.
      beat: Receives the variant and the stage that begins.
      calibration: Takes a sample before and after each block.
      draw_cores: Context in which each quick variant is called once, before every second pass. The cores on which a
        program's threads wake up change its time by up to two times. Without it, they wake up on the same cores for the
        whole process.
      queued: Number of calls in a queue, fewer if calls are slow; 0 without queues. Queues, and rows of as many calls
        that are each waited for, take turns with the blocks in some of the passes.
      sides: Side times to measure, of SIDE_PROCESSES: queues between the blocks; after the passes, each variant alone,
        and its time until return.
      begun_s: Clock at the start of the process: the time from there to the first pass determines the best number of
        passes. If None, only the settings determine the number.
    """

    variants: Mapping[str, Prepared | RemoteVariant]
    settings: Settings
    seed: int
    clock: Clock
    interference: ReadInterference
    cores: float
    beat: Beat
    between: Between = _nothing
    calibration: TakeCalibration = take_none
    draw_cores: DrawCores | None = None
    queued: int = 0
    sides: Collection[str] = tuple(SIDE_PROCESSES)
    begun_s: float | None = None

    def measure(self) -> tuple[VariantSamples, ...]:
        """Return raw samples of each variant, seconds per call, in the given order."""
        settings = self.settings
        self._samplers: dict[str, Timed] = {
            name: call
            if isinstance(call, RemoteVariant)
            else Sampler(call, self.clock, settings.sample_s, settings.settle_s)
            for name, call in self.variants.items()
        }
        self._orders = random.Random(self.seed)
        self._order = self._orders.sample(list(self._samplers), len(self._samplers))
        collecting = gc.isenabled()
        gc.collect()
        gc.disable()  # a collection would land in one variant's block; timeit does the same
        try:
            self._warm_up()
            self._take_passes()
            self._take_isolated()
            self._take_returns()
        finally:
            if collecting:
                gc.enable()
        return tuple(sampler.record(name, self.cores) for name, sampler in self._samplers.items())

    def _warm_up(self) -> None:
        for name in self._order:
            self.beat(name, "warm-up")
            self._samplers[name].calibrate()
            self.beat(name, "warm-up")
            self._samplers[name].warm_up()

    def _take_passes(self) -> None:
        """Take blocks of all variants in every pass, and rows and queues in some of the passes."""
        queued = self.queued if QUEUE in self.sides else 0
        rows = {name: calls for name, sampler in self._samplers.items() if (calls := _count_queued(sampler, queued))}
        passes = self._count_passes()
        rows_s = [
            _row_s(self._samplers[name], calls, self.settings) for name, calls in rows.items() for _ in (False, True)
        ]
        with_rows = min(passes, QUEUE_PASSES, count_passes(rows_s, self.settings)) if rows else 0
        least_s = self.settings.block_s
        # In few passes as long as in all: if one variant is slow, the others must still have enough time in blocks.
        block_s = max(least_s, min(self.settings.blocks * least_s, LEAST_SAMPLED_S) / passes)
        for pass_number in range(0, passes, 2):
            self._orders.shuffle(self._order)
            self._wake_threads()
            turns = [(name, 0, False) for name in self._order]
            if is_among(pass_number // 2, with_rows // 2, passes // 2):
                turns += [(name, calls, is_queue) for name, calls in rows.items() for is_queue in (False, True)]
                self._orders.shuffle(turns)
            for number, in_order in ((pass_number, turns), (pass_number + 1, turns[::-1])):
                for name, calls, is_queue in in_order:
                    self.beat(name, "queue" if is_queue else "row" if calls else "timing")
                    if calls:
                        self._samplers[name].take_row(calls, least_s, queued=is_queue)
                    else:
                        self._samplers[name].take_block(number, block_s, self.interference, self.calibration)
            self.between(pass_number + 1)

    def _count_passes(self) -> int:
        blocks_s = [_block_s(sampler, self.settings) for sampler in self._samplers.values()]
        passes = min(count_passes(blocks_s, self.settings), _most_passes(self.variants.values()))
        return passes if self.begun_s is None else min(passes, share_passes(blocks_s, self.clock() - self.begun_s))

    def _wake_threads(self) -> None:
        if self.draw_cores is not None:
            with self.draw_cores(self._orders):
                for name in self._order:
                    self._samplers[name].wake_threads(self.settings.block_s)

    def _take_isolated(self) -> None:
        """Time each variant alone, if its blocks are short enough."""
        if ISOLATED not in self.sides or len(self._samplers) == 1:
            return
        for name, sampler in self._samplers.items():
            if not sampler.is_limited and ISOLATED_BLOCKS * _block_s(sampler, self.settings) <= ISOLATED_S:
                self.beat(name, "isolated")
                sampler.take_isolated(ISOLATED_BLOCKS, self.settings.block_s)

    def _take_returns(self) -> None:
        """Time each variant until it returns, if that is before its result is there."""
        for name, sampler in self._samplers.items():
            if RETURN in self.sides and sampler.returns_early:
                self.beat(name, "time until return")
                sampler.take_returns()


def _most_passes(variants: Iterable[Prepared | RemoteVariant]) -> int:
    """As many passes, an even number, as the variants may be called; two more calls come before and one after."""
    limits = [call.most_calls for call in variants if isinstance(call, Prepared) and call.most_calls is not None]
    return max(2, 2 * ((min(limits) - 3) // 2)) if limits else sys.maxsize


def _count_queued(sampler: Timed, declared: int) -> int:
    """How many calls a queue of the variant has; 0 where a call returns with its result, or must be made seldom."""
    return count_queued(sampler.call_s, declared) if sampler.returns_early and not sampler.is_limited else 0


def _row_s(sampler: Timed, calls: int, settings: Settings) -> float:
    """How long a turn of so many calls in a row takes, with the call before."""
    return max(settings.block_s, sampler.call_s * (calls + 1))


def _block_s(sampler: Timed, settings: Settings) -> float:
    """How long a block takes at least: one sample, if that is longer than a block."""
    return max(settings.block_s, sampler.call_s * sampler.calls)
