import gc
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain, cycle, repeat
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from jaxmeter import no_reference, workload
from jaxmeter.harness.machine.environment import paid_cores
from jaxmeter.harness.machine.interference import CounterReading
from jaxmeter.harness.machine.nvml import LIBRARIES
from jaxmeter.harness.machine.platforms import BACKENDS
from jaxmeter.harness.plan.processes import (
    FEWEST_PASSES,
    FEWEST_RETURNS,
    FEWEST_SLOW_PASSES,
    ISOLATED,
    ISOLATED_BLOCKS,
    LEAST_SAMPLED_S,
    MOST_RETURNS,
    ONE_PASS_S,
    QUEUE,
    QUEUE_S,
    RETURN,
    SIDE_PROCESSES,
    SLOW_CALL_S,
    WARM_UP_BLOCK_S,
    WARM_UP_LIMIT_S,
    WARM_UP_S,
    count_passes,
    count_queued,
    is_among,
    share_passes,
)
from jaxmeter.harness.probes import Context, timing
from jaxmeter.harness.probes.sampler import Sampler
from jaxmeter.harness.probes.timing import InterleavedTiming, probe_variants, time_process
from jaxmeter.harness.programs.modes import Carried, Prepared
from jaxmeter.harness.record import SCHEMA_VERSION, Load, Status, VariantSamples
from jaxmeter.harness.record.processes import DeviceState
from tests import samples
from tests.harness.conftest import FakeClock

# Powers of two, so that sums of them are exact.
SHORT_S, LONG_S = 2**-20, 2**-2
SAMPLE_S, BLOCK_S, BLOCKS = 2**-12, 2**-6, 8

SETTINGS = samples.settings(sample_s=SAMPLE_S, block_s=BLOCK_S, blocks=BLOCKS)


def prepared(clock: FakeClock, durations_s: Iterable[float], *, return_s: float = 0.0) -> Prepared:
    """A call that takes `return_s` to return and is ready after the next of the durations."""
    ready_after = iter(durations_s)
    return Prepared(
        call=lambda: clock.advance(return_s),
        args=(),
        wait=lambda result: clock.advance(next(ready_after) - return_s),
    )


def reading(wait_s: float | None) -> CounterReading:
    return CounterReading(wait_s=wait_s, cpu_s=0.0, steal_s=None, involuntary_switches=0)


def quiet() -> CounterReading:
    return reading(0.0)


def waiting(shares: Iterable[float]) -> Callable[[], CounterReading]:
    """Readings by the share of each block in turn that is spent waiting."""

    def totals() -> Iterator[CounterReading]:
        total = 0.0
        for share in shares:
            yield reading(total)
            total += share * BLOCK_S
            yield reading(total)

    return totals().__next__


def run(clock: FakeClock, variants: dict[str, Prepared], **options: Any) -> list[VariantSamples]:
    """A process of these variants on a quiet machine, by the settings of this file."""
    usual = {"seed": 0, "interference": quiet, "cores": 2, "beat": lambda variant, stage: None}
    arguments = {"variants": variants, "settings": SETTINGS, "clock": clock, **usual, **options}
    return list(InterleavedTiming(**arguments).measure())


def run_one(clock: FakeClock, call: Prepared, **options: Any) -> VariantSamples:
    (process,) = run(clock, {"a": call}, **options)
    return process


def time_of(clock: FakeClock, *durations_s: float, **options: Any) -> VariantSamples:
    """A process of one variant whose calls take these durations, the last one from then on."""
    return run_one(clock, prepared(clock, chain(durations_s, repeat(durations_s[-1]))), **options)


def all_samples(process: VariantSamples) -> set[float]:
    return {sample for block in process.blocks for sample in block.samples_s}


# Samples and blocks


@pytest.mark.parametrize(
    ("durations_s", "calls"),
    [
        ((SHORT_S,), SAMPLE_S / SHORT_S),
        ((SAMPLE_S,), 1),
        ((SAMPLE_S * 0.75,), 2),
        ((ONE_PASS_S / 2, SHORT_S), SAMPLE_S / SHORT_S),
        ((SAMPLE_S, SAMPLE_S, SHORT_S), SAMPLE_S / SHORT_S),
    ],
    ids=["short", "long enough by itself", "a little too short", "slow at first", "slow only while tuning"],
)
def test_a_short_call_is_repeated_until_a_sample_is_long_enough(clock, durations_s, calls):
    process = time_of(clock, *durations_s)

    assert process.calls == calls
    assert all_samples(process) == {durations_s[-1]}


def test_a_block_takes_samples_until_its_time_is_up(clock):
    process = time_of(clock, 2**-10)

    assert [block.samples_s for block in process.blocks] == [(2**-10,) * 16] * BLOCKS
    assert {block.wall_s for block in process.blocks} == {BLOCK_S}


def test_a_call_longer_than_a_block_is_a_block_by_itself(clock):
    process = time_of(clock, LONG_S)

    assert {block.samples_s for block in process.blocks} == {(LONG_S,)}


@pytest.mark.parametrize(
    ("duration_s", "passes"), [(0.25, FEWEST_PASSES), (0.5, FEWEST_PASSES), (1.0, 2), (8.0, 2)], ids=str
)
def test_slow_calls_have_few_passes_and_very_slow_ones_an_order_and_its_reverse(clock, duration_s, passes):
    assert len(time_of(clock, duration_s).blocks) == passes


@pytest.mark.parametrize(("duration_s", "warm_up", "times_return"), [(5.0, 2, 1), (ONE_PASS_S, 1, 0), (64.0, 1, 0)])
def test_a_process_of_very_slow_calls_makes_as_few_as_can_be(clock, duration_s, warm_up, times_return):
    time_of(clock, duration_s)

    assert clock.now == duration_s * (warm_up + FEWEST_SLOW_PASSES + times_return)


@pytest.mark.parametrize(("then_s", "is_steady"), [(16.0, True), (16.5, True), (17.0, False), (15.0, False)])
def test_the_first_block_tells_whether_a_call_was_steady_that_was_made_once(clock, then_s, is_steady):
    process = time_of(clock, 16.0, then_s)

    assert process.warmup_s == (16.0,)
    assert process.steady is is_steady


def test_beside_a_slow_call_a_quick_one_has_as_much_time_in_few_blocks_as_in_all(clock):
    variants = {"quick": prepared(clock, repeat(BLOCK_S / 4)), "slow": prepared(clock, repeat(8.0))}

    quick, _ = run(clock, variants)

    (block_s,) = {block.wall_s for block in quick.blocks}
    assert len(quick.blocks) == 2
    assert LEAST_SAMPLED_S / 2 <= block_s < LEAST_SAMPLED_S / 2 + BLOCK_S / 4


@pytest.mark.parametrize(
    ("blocks", "block_s", "call_s", "passes"),
    [
        (80, 0.002, 0.002, 80),
        (80, 0.002, 0.003, 80),
        (80, 0.002, 0.004, 60),
        (50, 0.002, 0.004, 36),
        (50, 0.002, 0.020, 6),
        (10, 0.020, 0.020, 10),
    ],
)
def test_of_slow_calls_there_are_as_many_passes_as_blocks_of_3_ms_take(blocks, block_s, call_s, passes):
    given = samples.settings(blocks=blocks, block_s=block_s)

    assert count_passes([call_s], given) == count_passes([call_s] * 3, given) == passes


def test_calls_that_became_slow_after_tuning_are_counted_anew(clock):
    tuned = int(SAMPLE_S / SHORT_S) + 1

    process = time_of(clock, *[SHORT_S] * (1 + 1 + tuned), BLOCK_S)

    assert process.calls == 1
    assert [block.samples_s for block in process.blocks] == [(BLOCK_S,)] * BLOCKS


def test_every_raw_sample_is_kept(clock):
    # Every eighth call is an outlier.
    process = time_of(clock, *[*[2**-12] * 7, 2**-8] * 1000)

    kept = [sample for block in process.blocks for sample in block.samples_s]
    assert kept.count(2**-8) == pytest.approx(len(kept) / 8, abs=BLOCKS)


# Warm-up


def test_warm_up_is_recorded_apart_from_the_samples(clock):
    tuning_s = [2**-8] * 2

    process = time_of(clock, *tuning_s, 2**-5, 2**-6, 2**-7, 2**-10)

    assert process.warmup_s == (2**-5, 2**-6, 2**-7, 2**-10, 2**-10)
    assert process.steady
    assert all_samples(process) == {2**-10}


def test_a_call_that_is_steady_at_once_is_warmed_up_for_the_least_time(clock):
    process = time_of(clock, 2**-10)

    block_s = math.ceil(WARM_UP_BLOCK_S / 2**-10) * 2**-10
    assert process.warmup_s == (2**-10,) * math.ceil(WARM_UP_S / block_s)


def test_a_restless_call_is_given_up_after_the_warm_up_limit(clock):
    process = time_of(clock, *[2**-7, 2**-6] * 1000)

    assert not process.steady
    assert WARM_UP_LIMIT_S <= sum(process.warmup_s) <= WARM_UP_LIMIT_S + 2**-6
    assert len(process.blocks) == BLOCKS


def test_the_calls_that_tune_a_slow_one_warm_it_up_too(clock):
    process = time_of(clock, 2.0, 4.0, 8.0)

    assert process.warmup_s == (2.0, 4.0)
    assert not process.steady


@pytest.mark.parametrize("duration_s", [0.5, 1.0, 8.0, 16.0])
def test_a_slow_call_that_always_takes_equally_long_is_steady(clock, duration_s):
    assert time_of(clock, duration_s).steady


# Order


def order_of(clock: FakeClock, names: str, seed: int) -> list[str]:
    """The variants' names in the order of their blocks, a text per pass."""
    begun = []
    variants = {name: prepared(clock, repeat(BLOCK_S)) for name in names}
    run(clock, variants, seed=seed, beat=lambda variant, stage: begun.append(variant) if stage == "timing" else None)
    return ["".join(begun[start : start + len(names)]) for start in range(0, len(begun), len(names))]


def test_passes_are_a_shuffled_order_then_its_reverse(clock):
    passes = order_of(clock, "abcd", seed=0)

    assert len(passes) == BLOCKS
    assert all(sorted(pass_number) == list("abcd") for pass_number in passes)
    assert passes[1::2] == [pass_number[::-1] for pass_number in passes[::2]]
    assert len(set(passes[::2])) > 1


def test_the_seed_decides_the_order(clock):
    first = order_of(clock, "abcd", seed=1)

    assert first == order_of(clock, "abcd", seed=1) != order_of(clock, "abcd", seed=2)


def test_variants_come_back_in_the_order_given(clock):
    variants = {name: prepared(clock, repeat(BLOCK_S)) for name in "dbca"}

    processes = run(clock, variants)

    assert [process.variant for process in processes] == list("dbca")


@settings(max_examples=30)
@given(powers=st.lists(st.integers(-9, 2), min_size=1, max_size=4), seed=st.integers(0, 100))
def test_every_variant_has_a_block_in_every_pass(powers, seed):
    clock = FakeClock()
    variants = {f"takes 2**{power} s ({n})": prepared(clock, repeat(2.0**power)) for n, power in enumerate(powers)}

    processes = run(clock, variants, seed=seed)

    (count,) = {len(process.blocks) for process in processes}
    assert FEWEST_SLOW_PASSES <= count <= BLOCKS
    assert all([block.pass_number for block in process.blocks] == list(range(count)) for process in processes)
    assert [all_samples(process) for process in processes] == [{2.0**power} for power in powers]


# Interference


@pytest.mark.parametrize(
    ("interference", "wait_s"),
    [
        (waiting(repeat(0.5)), 0.5 * BLOCK_S),
        (waiting(repeat(-0.5)), 0.0),
        (lambda: reading(None), None),
        (map(reading, cycle([0.0, None])).__next__, None),
    ],
    ids=["noisy throughout", "a counter that went back", "a system that does not tell", "told at one end of a block"],
)
def test_a_block_holds_how_long_its_threads_waited_and_there_are_no_more_of_them(clock, interference, wait_s):
    process = time_of(clock, BLOCK_S, interference=interference)

    assert [(block.wait_s, block.steal_s) for block in process.blocks] == [(wait_s, None)] * BLOCKS


def test_the_counters_of_a_block_are_of_the_very_time_that_its_samples_took(clock):
    # What comes before a block, copying state above all, takes as long as the block, and runs on all the time.
    calls = replace(prepared(clock, repeat(BLOCK_S)), reset=lambda: clock.advance(BLOCK_S))

    def interference() -> CounterReading:
        return CounterReading(
            wait_s=clock() / 4,
            cpu_s=clock(),
            steal_s=clock() / 8,
            involuntary_switches=int(clock() / BLOCK_S),
        )

    process = run_one(clock, calls, interference=interference)

    found = {(one.wall_s, one.cpu_s, one.wait_s, one.steal_s, one.involuntary_switches) for one in process.blocks}
    assert found == {(BLOCK_S, BLOCK_S, BLOCK_S / 4, BLOCK_S / 8, 1)}


# Alone


def two_that_slow_each_other_down(clock: FakeClock, call_s: float) -> dict[str, Prepared]:
    """Calls that take twice as long after the other's call."""
    last = []

    def call(name: str) -> None:
        clock.advance(call_s if last[-1:] == [name] else 2 * call_s)
        last.append(name)

    return {
        name: Prepared(call=partial(call, name), args=(), wait=lambda result: result, returns_early=False)
        for name in "ab"
    }


def test_after_the_passes_each_variant_is_timed_alone_where_the_caches_hold_its_own_data(clock):
    variants = two_that_slow_each_other_down(clock, BLOCK_S)

    one, other = run(clock, variants)

    assert 2 * BLOCK_S in all_samples(one)
    assert one.isolated_s == other.isolated_s == (BLOCK_S,) * ISOLATED_BLOCKS


@pytest.mark.parametrize(
    ("call_s", "options"), [(BLOCK_S, {"sides": ()}), (2**-2, {})], ids=["not asked for", "slow calls"]
)
def test_not_every_variant_is_timed_alone(clock, call_s, options):
    processes = run(clock, two_that_slow_each_other_down(clock, call_s), **options)

    assert [process.isolated_s for process in processes] == [(), ()]
    assert time_of(clock, BLOCK_S).isolated_s == ()  # which is alone anyway


# Between the passes


def test_after_every_second_pass_others_have_their_turn(clock):
    turns = []

    run(
        clock,
        {"a": prepared(clock, repeat(BLOCK_S))},
        beat=lambda variant, stage: turns.append(stage),
        between=turns.append,
    )

    assert turns == [
        *["warm-up"] * 2,
        *[item for last in (1, 3, 5, 7) for item in ("timing", "timing", last)],
        "time until return",
    ]


def test_a_calibration_is_taken_before_and_after_each_block_and_its_time_is_not_the_blocks(clock):
    taken_s = iter([1.0, 3.0, 4.0, 2.0, *[1.0] * 12])

    def calibration() -> float:
        clock.advance(64.0)
        return next(taken_s)

    process = time_of(clock, BLOCK_S, calibration=calibration)

    assert [block.calibration_s for block in process.blocks] == [3.0, 4.0, *[1.0] * 6]
    assert {block.wall_s for block in process.blocks} == {BLOCK_S}


# Where threads run


def test_each_quick_variant_is_called_on_drawn_cores_before_every_second_pass(clock):
    words = []

    @contextmanager
    def draw_cores(draws):
        words.append("drawn")
        yield
        words.append("given back")

    def call(name: str, duration_s: float) -> Prepared:
        def once():
            words.append(name)
            clock.advance(duration_s)

        return Prepared(call=once, args=(), wait=lambda result: None)

    variants = {"quick": call("quick", BLOCK_S), "slow": call("slow", 2 * BLOCK_S)}
    run(clock, variants, beat=lambda variant, stage: words.append(stage), draw_cores=draw_cores)

    assert [words[at : at + 3] for at, word in enumerate(words) if word == "drawn"] == [
        ["drawn", "quick", "given back"]
    ] * 3
    passes = [word for word in words if word in ("drawn", "timing")]
    assert passes == ["drawn", *["timing"] * 4] * 3


def test_a_variant_that_carries_state_is_reset_before_it_is_called_on_drawn_cores(clock):
    resets = []
    call = Prepared(call=lambda: None, args=(), wait=lambda result: None, reset=lambda: resets.append(clock.now))
    sampler = Sampler(call, clock, sample_s=1.0, call_s=1.0)

    sampler.wake_threads(1.0)
    sampler.wake_threads(0.5)

    assert len(resets) == 1


@pytest.mark.parametrize(
    ("call_s", "most_calls", "untimed"),
    [(0.25, None, 4), (1.0, None, 1), (1.25, None, 0), (0.25, 9, 0)],
    ids=["short", "as long", "longer", "limited"],
)
def test_untimed_calls_open_a_block_of_calls_that_are_no_longer(clock, call_s, most_calls, untimed):
    made = []

    def call() -> None:
        made.append(clock.now)
        clock.advance(call_s)

    one = Prepared(call=call, args=(), wait=lambda result: None, reset=made.clear, most_calls=most_calls)
    sampler = Sampler(one, clock, sample_s=0.0, settle_s=1.0, call_s=call_s)

    sampler.take_block(0, 0.0, quiet)
    assert (len(made), len(sampler.blocks[0].samples_s)) == (untimed + 1, 1)

    sampler.take_isolated(1, 0.0)
    assert len(made) == untimed + 1


# Time until return


def test_dispatch_is_the_time_until_the_call_returns(clock):
    process = run_one(clock, prepared(clock, repeat(2**-8), return_s=2**-14))

    assert set(process.return_s) == {2**-14}
    assert all_samples(process) == {2**-8}


@pytest.mark.parametrize(
    ("duration_s", "expected"),
    [(SHORT_S, MOST_RETURNS), (2**-9, 10), (2**-8, 5), (2**-7, FEWEST_RETURNS), (2**-6, 1), (8.0, 1), (16.0, 0)],
    ids=["short", "10 in 20 ms", "5 in 20 ms", "2 in 20 ms", "long", "slow", "very slow"],
)
def test_dispatch_has_many_samples_of_a_short_call_and_few_of_a_slow_one(clock, duration_s, expected):
    assert len(time_of(clock, duration_s).return_s) == expected


class Large:
    """A result that takes a while to be freed."""

    def __init__(self, free):
        self._free = free

    def __del__(self):
        self._free()


def freed_in(clock: FakeClock, seconds: float, call_s: float) -> Prepared:
    """A call whose result takes these seconds to be freed."""

    def call() -> Large:
        clock.advance(call_s)
        return Large(lambda: clock.advance(seconds))

    return Prepared(call=call, args=(), wait=lambda result: result)


def test_freeing_results_is_part_of_a_sample_of_several_calls_but_not_of_one_call_nor_of_the_time_until_return(clock):
    slow, quick = (run_one(clock, freed_in(clock, *s)) for s in ((2**-7, 2**-8), (2**-16, 2**-16)))

    assert slow.calls == 1 < quick.calls
    assert set(slow.return_s) == all_samples(slow) == {2**-8}
    assert all_samples(quick) == {2**-15}


def test_a_peer_that_returns_its_result_has_no_dispatch(clock):
    peer = Prepared(call=lambda: clock.advance(2**-8), args=(), wait=lambda result: result, returns_early=False)

    assert run_one(clock, peer).return_s == ()


# Calls in a queue


def issued(clock: FakeClock, call_s: float, return_s: float) -> Prepared:
    """Calls that are ready one after the other, each `call_s` after it was begun, and return at once."""
    ready_at = [0.0]

    def call() -> None:
        clock.advance(return_s)
        ready_at[0] = max(ready_at[0], clock.now) + call_s - return_s

    return Prepared(call=call, args=(), wait=lambda result: clock.advance(max(0.0, ready_at[0] - clock.now)))


def test_calls_in_a_queue_are_waited_for_once_and_those_of_a_row_beside_it_one_by_one(clock):
    process = run_one(clock, issued(clock, 2**-8, 2**-12), queued=4)

    assert process.queued_calls == 4
    assert set(process.waited_s) == {2**-8}
    # Each begins as soon as the one before is ready; only the first is waited for to begin.
    assert set(process.queued_s) == {(2**-12 + 4 * (2**-8 - 2**-12)) / 4}
    assert all_samples(process) == {2**-8}


def test_rows_and_queues_go_on_until_the_time_of_a_block_is_up(clock):
    made = []

    def call() -> None:
        made.append(clock.now)
        clock.advance(2**-10)

    one = Prepared(call=call, args=(), wait=lambda result: result, reset=made.clear)
    sampler = Sampler(one, clock, sample_s=0.0)

    for queued in (False, True):
        sampler.take_row(3, 2**-8, queued=queued)
        # One call before, then rows of three until four calls' time is up.
        assert len(made) == 1 + 3 + 3


def test_rows_and_queues_take_turns_with_the_blocks_of_all_variants(clock):
    told = []
    variants = {name: prepared(clock, repeat(2**-9)) for name in "ab"}

    run(clock, variants, queued=2, beat=lambda variant, stage: told.append((variant, stage)))

    turns = [one for one in told if one[1] in ("timing", "row", "queue")]
    passes = [turns[at : at + 6] for at in range(0, len(turns), 6)]
    assert len(passes) == BLOCKS
    assert {tuple(sorted(one)) for one in passes} == {
        tuple((name, stage) for name in "ab" for stage in ("queue", "row", "timing"))
    }
    assert all(there == back[::-1] for there, back in zip(passes[::2], passes[1::2], strict=True))
    assert len({tuple(one) for one in passes}) > 2


def test_slow_calls_are_queued_in_few_passes_and_have_as_many_blocks_as_without(clock):
    process = run_one(clock, prepared(clock, repeat(2**-6)), queued=5)

    assert len(process.blocks) == len(time_of(FakeClock(), 2**-6).blocks) == BLOCKS
    assert len(process.queued_s) == len(process.waited_s) == FEWEST_PASSES


@pytest.mark.parametrize(("chosen", "expected"), [(0, []), (1, [9]), (3, [3, 6, 9]), (10, list(range(10)))])
def test_what_is_spread_evenly_is_as_many_as_it_shall_be(chosen, expected):
    assert [place for place in range(10) if is_among(place, chosen, 10)] == expected


def test_nothing_is_queued_that_is_not_declared_or_returns_with_its_result(clock):
    peer = Prepared(call=lambda: clock.advance(2**-8), args=(), wait=lambda result: result, returns_early=False)

    assert time_of(clock, 2**-8).queued_s == run_one(clock, peer, queued=4).queued_s == ()


@pytest.mark.parametrize(
    ("call_s", "declared", "calls"),
    [(1e-5, 16, 16), (QUEUE_S / 16, 16, 16), (QUEUE_S / 4, 16, 4), (0.2, 16, 2), (SLOW_CALL_S, 16, 0), (1e-5, 0, 0)],
)
def test_a_queue_has_fewer_calls_where_they_are_slow_and_none_where_they_are_very_slow(call_s, declared, calls):
    assert count_queued(call_s, declared) == calls


def test_two_results_of_a_queue_exist_at_most(clock):
    alive, most = [0], [0]

    class Result:
        def __init__(self):
            alive[0] += 1
            most[0] = max(most[0], alive[0])

        def __del__(self):
            alive[0] -= 1

    def call() -> Result:
        clock.advance(2**-8)
        return Result()

    run_one(clock, Prepared(call=call, args=(), wait=lambda result: result), queued=8)

    assert most == [2]
    assert alive == [0]


def test_a_queue_begins_with_the_inputs_and_its_calls_go_on_from_each_other(clock):
    begun = []

    def call(state: int) -> tuple[int]:
        clock.advance(2**-8)
        begun.append(state)
        return (state + 1,)

    carried = Carried(call, {0: 0}, begin=lambda args: args)
    one = Prepared(call=carried, args=(0,), wait=lambda result: result, reset=partial(carried.reset, 0))
    sampler = Sampler(one, clock, sample_s=0.0)

    for queued in (False, True):
        begun.clear()
        sampler.take_row(3, 0.0, queued=queued)
        # One call before, and three in a row.
        assert begun == list(range(4))


# Around the measurement


def test_the_garbage_collector_rests_while_calls_are_timed_and_only_then(clock):
    rested = []

    def call() -> None:
        rested.append(not gc.isenabled())
        clock.advance(BLOCK_S)

    run_one(clock, Prepared(call=call, args=(), wait=lambda result: result))

    assert all(rested)
    assert gc.isenabled()


def test_the_garbage_collector_works_again_after_a_call_that_raises(clock):
    def call() -> None:
        raise ValueError("too small")

    with pytest.raises(ValueError, match="too small"):
        run_one(clock, Prepared(call=call, args=(), wait=lambda result: result))

    assert gc.isenabled()


def test_every_stage_is_told_before_it_begins(clock):
    told = []
    variants = {name: prepared(clock, repeat(BLOCK_S)) for name in "ab"}

    run(clock, variants, beat=lambda variant, stage: told.append((variant, stage)))

    timed = {("a", "timing"), ("b", "timing")}
    assert sorted(told[:4]) == [("a", "warm-up"), ("a", "warm-up"), ("b", "warm-up"), ("b", "warm-up")]
    assert set(told[4:-4]) == timed
    assert told[-4:-2] == [("a", "isolated"), ("b", "isolated")]
    assert told[-2:] == [("a", "time until return"), ("b", "time until return")]


# A process that times


def context_of(*functions, clock: FakeClock, **of_context) -> Context:
    """A case of functions of nothing, each called as it is."""
    first, *others = functions
    made = workload(inputs=lambda key: (), reference=no_reference("none"), modes=("eager",))(first)
    for other in others:
        made.implementation(other)
    case = samples.planned_case(variants=tuple(made.variants))
    as_usual = {"platform": BACKENDS["cpu"], "case": case, "settings": SETTINGS, "index": 3, "seed": 5}
    return Context(workload=made, params={}, arguments=(), clock=clock, folder=None, **{**as_usual, **of_context})


def taking(clock: FakeClock, **durations_s: float) -> list[Callable[[], None]]:
    """Functions of these names, each of which takes so long."""

    def make(name: str, duration_s: float) -> Callable[[], None]:
        def call() -> None:
            clock.advance(duration_s)

        call.__name__ = name
        return call

    return [make(*item) for item in durations_s.items()]


def test_a_process_tells_what_it_is_of_and_times_every_variant(clock):
    context = context_of(*taking(clock, short=2**-10, long=2**-8), clock=clock)

    found = probe_variants(("short:eager", "long:eager"), context)

    process = found.process
    assert found.outcomes == {}
    of = (process.schema_version, process.case, process.index, process.seed)
    assert of == (SCHEMA_VERSION, context.case.id, 3, 5)
    sampled = {one.variant: all_samples(one) for one in process.variants}
    assert sampled == {"short:eager": {2**-10}, "long:eager": {2**-8}}
    assert {one.cores for one in process.variants} == {paid_cores()}


def test_a_process_queues_as_many_calls_as_its_case_declares(clock):
    context = context_of(*taking(clock, one=2**-10), clock=clock, index=0)
    asked = replace(context, case=structs.replace(context.case, queued=3))

    assert [probe_variants(("one:eager",), each).process.variants[0].queued_calls for each in (context, asked)] == [
        0,
        3,
    ]


@pytest.mark.parametrize("index", [0, 2, 3, 4, 5])
def test_only_the_first_processes_queue_calls_time_each_variant_alone_and_how_long_a_call_takes_to_return(clock, index):
    context = context_of(*taking(clock, one=2**-10, other=2**-10), clock=clock, index=index)
    context.case = structs.replace(context.case, queued=3)

    found = probe_variants(("one:eager", "other:eager"), context)

    for process in found.process.variants:
        times = {QUEUE: process.queued_s, ISOLATED: process.isolated_s, RETURN: process.return_s}
        assert {side: bool(one) for side, one in times.items()} == {
            side: index < processes for side, processes in SIDE_PROCESSES.items()
        }


def test_a_process_has_as_many_passes_as_pay_by_what_it_took_until_then(clock):
    many = structs.replace(SETTINGS, blocks=200)

    def count(age_s, settings=many):
        calls = taking(clock, one=BLOCK_S / 4)
        context = context_of(*calls, clock=clock, settings=settings, begun_s=clock() - age_s)
        return len(probe_variants(("one:eager",), context).process.variants[0].blocks)

    assert FEWEST_PASSES <= count(0.01) < count(1.0) < count(1e3) == 200
    # Where the number of processes is fixed, time that passes leave buys nothing.
    assert count(0.01, structs.replace(many, processes=5)) == 200


@pytest.mark.parametrize(
    ("blocks_s", "before_s", "passes"),
    [
        # 10 * sqrt((0.44 + 0.1) / (4 * 2.8 ms)): a quick case of four variants.
        ([0.002] * 4, 0.44, 70),
        ([0.002], 0.44, 138),
        # Four times as long before the passes.
        ([0.002] * 4, 4 * 0.44 + 0.3, 138),
        # Slow calls: 10 / 10 ** 0.25 * sqrt(1 / (4 * 20.8 ms)).
        ([0.02] * 4, 0.9, 20),
        ([0.5] * 4, 3.9, 6),
    ],
)
def test_passes_are_the_root_of_the_costs_times_the_deviations_as_kalibera_and_jones_have_it(
    blocks_s, before_s, passes
):
    assert share_passes(blocks_s, before_s) == passes


def test_a_process_holds_calibrations_of_every_second_pass_and_of_both_sides_of_each_block(clock):
    context = context_of(*taking(clock, one=2**-10, other=2**-10), clock=clock)

    process = probe_variants(("one:eager", "other:eager"), context).process

    taken = {one.name: len(one.samples_s) for one in process.calibrations}
    assert taken == {"copy": BLOCKS / 2, "alu": 4 * BLOCKS}
    # By a clock that stands.
    assert {block.calibration_s for one in process.variants for block in one.blocks} == {0.0}
    assert process.device_states == ()


def test_a_process_holds_the_states_of_the_devices_that_a_case_uses(clock, monkeypatch):
    asked = []

    def open_library(ordinals):
        asked.append(list(ordinals))
        return SimpleNamespace(
            read=lambda pass_number: DeviceState(pass_number=pass_number), close=lambda: asked.append("closed")
        )

    monkeypatch.setitem(LIBRARIES, "made up", open_library)
    platform = structs.replace(BACKENDS["cpu"], state_library="made up")
    found = probe_variants(
        ("<lambda>:eager",), context_of(lambda: clock.advance(BLOCK_S), clock=clock, platform=platform)
    )

    assert [one.pass_number for one in found.process.device_states] == [1, 3, 5, 7]
    assert asked == [[0], "closed"]


def test_a_process_tells_what_the_machine_ran_from_its_warm_up_to_its_last_dispatch(clock, monkeypatch):
    class Machine:
        def __call__(self) -> CounterReading:
            return CounterReading(
                wait_s=0.0,
                cpu_s=clock(),
                steal_s=clock() / 8,
                involuntary_switches=0,
                throttled_s=clock() / 16,
                machine_s=2 * clock(),
                readings_s=clock() / 4,
            )

        def close(self) -> None:
            pass

    monkeypatch.setattr(timing, "Interference", Machine)

    found = probe_variants(("<lambda>:eager",), context_of(lambda: clock.advance(BLOCK_S), clock=clock))

    wall_s = clock() - BLOCK_S  # all but the first call
    assert found.process.load == Load(
        wall_s=wall_s, cpu_s=1.25 * wall_s, machine_s=2 * wall_s, steal_s=wall_s / 8, throttled_s=wall_s / 16
    )


def test_a_variant_that_cannot_be_called_is_named_and_nothing_is_timed(clock):
    def broken():
        raise ValueError("no luck")

    found = probe_variants(("fine:eager", "broken:eager"), context_of(*taking(clock, fine=2**-10), broken, clock=clock))

    assert found.process is None
    assert {name: (one.status, one.reason) for name, one in found.outcomes.items()} == {
        "broken:eager": (Status.FAILED, "in stage 'first call': ValueError: no luck")
    }
    assert clock.now == 2**-10


@pytest.mark.parametrize("lacking", ["case", "settings"])
def test_what_is_planned_must_be_known(clock, lacking):
    with pytest.raises(ValueError, match="timing needs the planned case, and the settings of the run"):
        time_process({}, context_of(lambda: None, clock=clock, **{lacking: None}))


def prepare_all(variants, seed, monkeypatch):
    """Return the order in which a process prepares variants, and the order in which it times them."""
    order = []

    def prepare(name):
        order.append(name)
        return SimpleNamespace(reset=lambda: None, call=lambda: None, args=(), wait=lambda result: None)

    context = SimpleNamespace(seed=seed, find_remote=lambda names: {}, stage=lambda stage: None, prepare=prepare)
    monkeypatch.setattr(timing, "time_process", lambda prepared, context: tuple(prepared))
    process = probe_variants(variants, context).process
    return tuple(order), process


def test_each_process_prepares_the_variants_in_an_order_of_its_own(monkeypatch):
    # Where a program's memory is depends on what was prepared before; which program is first must not decide.
    variants = ("a", "b", "c")

    prepared, timed = zip(*(prepare_all(variants, seed, monkeypatch) for seed in range(40)), strict=True)

    assert set(timed) == {variants}
    assert {order[0] for order in prepared} == set(variants)
    assert all(sorted(order) == list(variants) for order in prepared)
    assert prepare_all(variants, 7, monkeypatch)[0] == prepared[7]
