"""One variant while it is measured: its samples, blocks and warm-up."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from jaxmeter.harness.machine.interference import ReadInterference
from jaxmeter.harness.metrics.statistics import agree, find_block_time
from jaxmeter.harness.plan.processes import (
    FEWEST_RETURNS,
    MOST_CALLS,
    MOST_RETURNS,
    ONE_PASS_S,
    RETURN_S,
    SLOW_CALL_S,
    STEADY_WITHIN,
    WARM_CALL_S,
    WARM_UP_BLOCK_S,
    WARM_UP_LIMIT_S,
    WARM_UP_S,
)
from jaxmeter.harness.probes.calibration import TakeCalibration, find_slower, take_none
from jaxmeter.harness.programs.jax_events import stop_using_cache, watch_jax
from jaxmeter.harness.programs.modes import Clock, Prepared
from jaxmeter.harness.record import Block, VariantSamples


class Timed(Protocol):
    """A variant that takes turns with others: in this process, or in one of another environment."""

    @property
    def calls(self) -> int:
        """How many calls make a sample."""

    @property
    def call_s(self) -> float:
        """About how long a call takes."""

    @property
    def is_limited(self) -> bool:
        """Whether it must be called seldom: each block is one call then."""

    @property
    def returns_early(self) -> bool:
        """Whether a call returns before its result is ready."""

    def calibrate(self) -> None:
        """Find how many calls make a sample."""

    def warm_up(self) -> None:
        """Run until it is steady, for a limited time."""

    def wake_threads(self, longest_s: float) -> None:
        """Wake the threads of the program by an untimed call, where that takes no longer than this."""

    def take_block(
        self, pass_number: int, block_s: float, interference: ReadInterference, calibration: TakeCalibration = take_none
    ) -> None:
        """Take a block of samples, with the counters of that very time, and the calibration loop before and after."""

    def take_row(self, calls: int, block_s: float, *, queued: bool) -> None:
        """Take rows of so many calls: each waited for, or all once."""

    def take_isolated(self, count: int, block_s: float) -> None:
        """Take blocks in a row."""

    def take_returns(self) -> None:
        """Time single calls until they return."""

    def record(self, name: str, cores: float) -> VariantSamples:
        """Return all samples."""


@dataclass
class Sampler:
    """A variant of this process, and what was measured of it so far.

    Args:
      sample_s: The least time that a sample may take.
      settle_s: How long untimed calls last at the start of a block, of calls that are no longer.
      compiles_per_call: Programs that every call compiles.
    """

    prepared: Prepared
    clock: Clock
    sample_s: float
    settle_s: float = 0.0
    calls: int = 1
    call_s: float = 0.0
    warmup_s: list[float] = field(default_factory=list)
    steady: bool = False
    blocks: list[Block] = field(default_factory=list)
    return_s: list[float] = field(default_factory=list)
    isolated_s: list[float] = field(default_factory=list)
    queued_calls: int = 0
    waited_s: list[float] = field(default_factory=list)
    queued_s: list[float] = field(default_factory=list)
    compiles_per_call: int = 0

    @property
    def is_limited(self) -> bool:
        """Whether it must be called seldom: each block is one call then."""
        return self.prepared.most_calls is not None

    @property
    def returns_early(self) -> bool:
        """Whether a call returns before its result is ready."""
        return self.prepared.returns_early

    def calibrate(self) -> None:
        """Finds how many calls make a sample; the first call is not looked at, unless calls are slow."""
        self.prepared.reset()
        first_s = self._sample_watched()
        if self.is_limited:
            self.call_s, self.warmup_s, self.steady = first_s, [first_s], True
            return
        if first_s >= ONE_PASS_S:
            self.call_s, self.warmup_s = first_s, [first_s]
            return
        while True:
            self.call_s = sample(self.prepared, self.calls, self.clock)
            if self.call_s * self.calls >= self.sample_s or self.calls >= MOST_CALLS:
                break
            wanted = self.sample_s / self.call_s if self.call_s > 0 else MOST_CALLS
            self.calls = min(MOST_CALLS, max(2 * self.calls, int(wanted) + 1))
        if self.call_s >= WARM_CALL_S:
            self.warmup_s = [first_s, self.call_s]

    def warm_up(self) -> None:
        """Runs until two blocks in a row agree and WARM_UP_S have passed; gives up after WARM_UP_LIMIT_S."""
        if self.warmup_s:  # slow calls, one or two of which were made
            self.steady = len(self.warmup_s) > 1 and agree(*self.warmup_s, within=STEADY_WITHIN)
            if self.steady or self.call_s >= SLOW_CALL_S or self.is_limited:
                return
        start = self.clock() - sum(self.warmup_s)
        while not self.steady and (self.clock() - start < WARM_UP_LIMIT_S or len(self.warmup_s) < 2):
            self.warmup_s.append(find_block_time(self._samples(WARM_UP_BLOCK_S)))
            if self.clock() - start >= WARM_UP_S and len(self.warmup_s) >= 2:
                self.steady = agree(*self.warmup_s[-2:], within=STEADY_WITHIN)
        self.call_s = self.warmup_s[-1]
        if self.call_s > 0:  # the first samples may have been slow
            self.calls = min(MOST_CALLS, math.ceil(self.sample_s / self.call_s))

    def wake_threads(self, longest_s: float) -> None:
        """Wakes the threads of the program by an untimed call, where that takes no longer than this."""
        if self.call_s <= longest_s and not self.is_limited:
            self.prepared.reset()
            sample(self.prepared, 1, self.clock)

    def take_block(
        self, pass_number: int, block_s: float, interference: ReadInterference, calibration: TakeCalibration = take_none
    ) -> None:
        """One block of samples, with the counters of that very time, and the calibration loop just before and after."""
        self.prepared.reset()
        self._settle()
        calibration_before_s = calibration()
        before = interference()
        start = self.clock()
        samples = self._samples(block_s)
        wall_s = self.clock() - start
        after = interference()
        self.blocks.append(
            Block(
                pass_number=pass_number,
                samples_s=tuple(samples),
                wall_s=wall_s,
                wait_s=after.since(before, "wait_s"),
                cpu_s=after.cpu_s - before.cpu_s,
                steal_s=after.since(before, "steal_s"),
                involuntary_switches=after.involuntary_switches - before.involuntary_switches,
                calibration_s=find_slower(calibration_before_s, calibration()),
            )
        )

    def take_row(self, calls: int, block_s: float, *, queued: bool) -> None:
        """Rows of so many calls, after one call that takes the caches back from whoever ran before."""
        self.prepared.reset()
        sample(self.prepared, 1, self.clock)
        take, taken = (sample_queue, self.queued_s) if queued else (sample, self.waited_s)
        rows: list[float] = []
        start = self.clock()
        while not rows or self.clock() - start < block_s:
            rows.append(take(self.prepared, calls, self.clock))
        self.queued_calls = calls
        taken.append(find_block_time(rows))

    def take_isolated(self, count: int, block_s: float) -> None:
        """Blocks in a row, after one call that takes the caches back from whoever ran before."""
        self.prepared.reset()
        sample(self.prepared, 1, self.clock)
        for _ in range(count):
            self.prepared.reset()
            self._settle()
            self.isolated_s.append(find_block_time(self._samples(block_s)))

    def take_returns(self) -> None:
        """Times single calls until they return, each waited for before the next begins; none that take ONE_PASS_S."""
        if self.call_s >= ONE_PASS_S:
            return
        call, args, wait, renew = self.prepared.call, self.prepared.args, self.prepared.wait, self.prepared.renew
        self.prepared.reset()
        affordable = int(RETURN_S / self.call_s) if self.call_s > 0 else MOST_RETURNS
        fewest = 1 if self.call_s >= WARM_CALL_S or self.is_limited else FEWEST_RETURNS
        for _ in range(fewest if self.is_limited else max(fewest, min(MOST_RETURNS, affordable))):
            args = args if renew is None else renew()
            start = self.clock()
            result = call(*args)
            self.return_s.append(self.clock() - start)
            wait(result)
            # Now and not by the next call, within the clock. A state that calls carry is freed by the call that
            # replaces it, as in a training loop.
            del result

    def record(self, name: str, cores: float) -> VariantSamples:
        """All of it."""
        if len(self.warmup_s) == 1 and self.blocks:
            self.steady = agree(self.warmup_s[0], find_block_time(self.blocks[0].samples_s), within=STEADY_WITHIN)
        return VariantSamples(
            variant=name,
            cores=cores,
            calls=self.calls,
            warmup_s=tuple(self.warmup_s),
            steady=self.steady,
            blocks=tuple(self.blocks),
            return_s=tuple(self.return_s),
            isolated_s=tuple(self.isolated_s),
            queued_calls=self.queued_calls,
            waited_s=tuple(self.waited_s),
            queued_s=tuple(self.queued_s),
            compiles_per_call=self.compiles_per_call,
        )

    def _sample_watched(self) -> float:
        """Time one call, of a variant that was called before, and find out how many programs a call compiles.

        A variant that carries state may compile in its second call and never again: only two consecutive calls decide.
        A program that is compiled within the clock must not come from the run's cache, where an earlier process has
        left it. The cache stays off for the rest of the process: other variants have their programs by now.
        """
        for _ in range(2):
            with watch_jax() as seen:
                call_s = sample(self.prepared, 1, self.clock)
            if seen.requested == 0:
                return call_s
        self.compiles_per_call = seen.requested
        stop_using_cache()
        return sample(self.prepared, 1, self.clock)

    def _settle(self) -> None:
        """Fill caches and memory again after the variant that ran before."""
        if self.call_s <= self.settle_s and not self.is_limited:
            self._samples(self.settle_s)

    def _samples(self, duration_s: float) -> list[float]:
        samples: list[float] = []
        start = self.clock()
        while not samples or (self.clock() - start < duration_s and not self.is_limited):
            samples.append(sample(self.prepared, self.calls, self.clock))
        return samples


def sample(prepared: Prepared, calls: int, clock: Clock) -> float:
    """Return the seconds per call over `calls` calls, each waited for.

    A single call's result is freed after the clock has stopped, which takes milliseconds if it is large. The results of
    several calls are freed meanwhile, as in any loop. They are small, since the calls are short, and keeping them would
    take memory that no loop takes.
    """
    call, args, wait = prepared.call, prepared.args, prepared.wait
    if prepared.renew is not None:
        return _sample_renewed(prepared, prepared.renew, calls, clock)
    if calls == 1:
        start = clock()
        result = wait(call(*args))
        elapsed_s = clock() - start
        del result
        return elapsed_s
    numbers = itertools.repeat(None, calls)
    start = clock()
    for _ in numbers:
        wait(call(*args))
    return (clock() - start) / calls


def sample_queue(prepared: Prepared, calls: int, clock: Clock) -> float:
    """Return the seconds per call over calls that are issued one after the other, waiting only for the last.

    Each result is dropped at the next call, as in a training loop: at most two are kept, in addition to carried state.
    Programs of one process run in the order of their calls on each device, so the last result is ready last.
    """
    call, args, result = prepared.call, prepared.args, None
    numbers = itertools.repeat(None, calls)
    start = clock()
    for _ in numbers:
        result = call(*args)
    prepared.wait(result)
    return (clock() - start) / calls


def _sample_renewed(prepared: Prepared, renew: Callable[[], tuple[Any, ...]], calls: int, clock: Clock) -> float:
    """Return the seconds per call, each with its own arguments, which are made outside the clock."""
    call, wait, elapsed_s = prepared.call, prepared.wait, 0.0
    for _ in range(calls):
        args = renew()
        start = clock()
        result = wait(call(*args))
        elapsed_s += clock() - start
        del result
    return elapsed_s / calls
