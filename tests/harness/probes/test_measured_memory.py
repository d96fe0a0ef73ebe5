import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmeter.harness.machine.platforms import BACKENDS
from jaxmeter.harness.probes import Context, measured_memory
from jaxmeter.harness.probes.measured_memory import (
    CALLS,
    HIDDEN,
    NO_COUNTER,
    SLOW_S,
    SMALLEST_BYTES,
    TOO_SMALL,
    TRIAL_BYTES,
)
from jaxmeter.harness.programs.modes import Prepared
from jaxmeter.harness.record import Outcome, Status

CHECKOUT = Path(__file__).parents[3]
MIB = 2**20
ARGUMENT = np.ones(MIB, np.uint8)


def context(backend="cpu", clock=lambda: 0.0):
    return Context(None, {}, BACKENDS[backend], (), clock, None)


def measured(call, *, argument=ARGUMENT, clock=lambda: 0.0, returns_early=True) -> Outcome:
    """Of a function of one argument, of 1 MiB."""
    prepared = Prepared(call, (argument,), lambda result: result, returns_early=returns_early)
    return measured_memory.watch_call("a", prepared, context(clock=clock))


def compiled_for(argument_bytes):
    """The stages of a program that reads as many bytes of its arguments; None where that is unknown."""
    analysis = None if argument_bytes is None else SimpleNamespace(argument_size_in_bytes=argument_bytes)
    return SimpleNamespace(compiled=SimpleNamespace(memory_analysis=lambda: analysis))


def held_on(*devices, data):
    """An array that lies on these devices, a copy on each."""
    array = Mock(spec=jax.Array, addressable_shards=[SimpleNamespace(device=one, data=data) for one in devices])
    array.sharding.device_set = {devices[0]}
    return array


def counts(peak, now):
    return {"peak_bytes_in_use": peak, "bytes_in_use": now}


# For real

REAL = """
import json, time
import jax, jax.numpy as jnp
from jaxmeter.harness.machine.platforms import BACKENDS
from jaxmeter.harness.programs.modes import How, prepare_as
from jaxmeter.harness.probes import Context
from jaxmeter.harness.probes.measured_memory import watch_call

MIB = 2**20
context = Context(None, {}, BACKENDS["cpu"], (), time.perf_counter, None)


def held(function, *arguments):
    prepared = prepare_as("jit", function, arguments, How(), time.perf_counter, lambda stage: None)
    found = watch_call("a", prepared, context)
    return [found.values, found.notes, found.reason]


words = jnp.ones(MIB)  # 4 MiB
print(json.dumps({
    "results": held(lambda x: jnp.broadcast_to(x, (8, MIB)) * 2, words),
    "little": held(lambda x: x * 2, jnp.ones(10)),
    "little beside its arguments": held(lambda x: x.sum(), words),
    "an argument unread": held(lambda x, y: jnp.broadcast_to(x, (8, MIB)) * 2, words, jnp.ones((4, MIB))),
}))
"""


@pytest.fixture(scope="module")
def real():
    """Measured peak memory, read in a process of its own: reading changes how its C library keeps memory."""
    if not os.access("/proc/self/clear_refs", os.W_OK):
        pytest.skip("this system does not tell what a process holds")
    ended = subprocess.run(
        [sys.executable, "-c", REAL],
        env={**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return json.loads(ended.stdout)


@pytest.mark.parametrize("call", ["results", "an argument unread"])
def test_what_a_call_holds_is_the_arguments_that_it_reads_and_by_how_much_the_process_grows(real, call):
    values, _, _ = real[call]

    assert values["measured_peak_bytes"][0] == pytest.approx((4 + 32) * MIB, rel=0.1)


@pytest.mark.parametrize("call", ["little", "little beside its arguments"])
def test_a_call_that_holds_little_beside_its_arguments_has_no_value_and_says_why(real, call):
    assert real[call] == [{}, [TOO_SMALL], None]


# A device's allocator


class Device(SimpleNamespace):
    """With an id, as jax's have."""

    __hash__ = object.__hash__
    __eq__ = object.__eq__


@pytest.fixture
def allocator(monkeypatch):
    """A device whose allocator says one thing after the other."""

    def say(before, after):
        told = iter([before, before, after])  # first it is asked whether it tells anything
        monkeypatch.setattr(jax, "devices", lambda: [device])
        device = Device(memory_stats=lambda: next(told))
        return device

    return say


def test_what_a_call_holds_on_a_device_is_by_how_much_its_memory_grows_to_the_peak_of_the_first_call(allocator):
    calls = []
    allocator(counts(10, 8), counts(25, 9))

    found = measured(calls.append)

    assert found == Outcome(status=Status.OK, values={"measured_peak_bytes": (25 - 8,)}), "the argument is the host's"
    assert len(calls) == 1


@pytest.mark.parametrize(("reads", "held"), [(None, 4070), (4000, 4070), (1000, 1070), (9000, 4070)])
def test_arguments_on_the_device_count_once_however_many_copies_it_holds(allocator, reads, held):
    device = allocator(counts(90_000, 90_000), counts(90_070, 90_000))
    argument = held_on(device, "another", data=jnp.ones(1000))  # 4000 bytes
    prepared = Prepared(id, (argument,), lambda result: result, compiled_for(reads))

    found = measured_memory.watch_call("a", prepared, context("gpu"))

    assert found.values == {"measured_peak_bytes": (held,)}


def test_a_call_may_take_its_arguments(allocator):
    device = allocator(counts(9, 9), counts(10, 9))

    def take(argument):
        del argument.addressable_shards  # as of a deleted array

    assert measured(take, argument=held_on(device, data=jnp.ones(1000))).values == {"measured_peak_bytes": (4001,)}


def test_what_a_program_takes_of_the_host_is_part_of_the_scaling_and_not_of_what_was_there(allocator):
    device = allocator(counts(9, 9), counts(10_009, 9))
    there = held_on(device, data=np.ones(10_000, np.uint8))
    prepared = Prepared(lambda *_: None, (there, ARGUMENT), lambda _: None, compiled_for(ARGUMENT.nbytes + 500))

    found = measured_memory.watch_call("a", prepared, context("gpu"))

    assert found.values == {"measured_peak_bytes": (500 + 10_000,)}


@pytest.mark.parametrize(("where", "asked"), [((), 0), ((0, 1), 0), ((2, 1), 1)])
def test_the_first_device_is_asked_or_the_first_of_those_that_hold_the_arguments(monkeypatch, where, asked):
    devices = [Device(id=number) for number in range(3)]
    monkeypatch.setattr(jax, "devices", lambda: devices)
    arguments = [Mock(spec=jax.Array) for _ in where]
    for argument, number in zip(arguments, where, strict=True):
        argument.sharding.device_set = {devices[number]}

    assert measured_memory._find_device((arguments, ARGUMENT)) is devices[asked]


def test_the_copies_of_what_calls_carry_do_not_hide_what_a_call_holds(monkeypatch):
    """An allocator that counts the copies while they are made, as a device's does."""
    held = counts(4000, 4000)
    monkeypatch.setattr(jax, "devices", lambda: [Device(memory_stats=lambda: dict(held))])
    resets = []

    def take(count):
        held["bytes_in_use"] += count
        held["peak_bytes_in_use"] = max(held.values())

    def reset():
        resets.append(1)
        take(4000)

    def call(_):
        take(5000)
        take(-5000)

    prepared = Prepared(call, (1,), lambda _: None, reset=reset)
    watched = context("gpu")
    watched.prepare, watched.find_excess = lambda variant: prepared, lambda prepared: None

    found = measured_memory.probe_variants(("a",), watched)

    assert found.outcomes["a"].values == {"measured_peak_bytes": (5000,)}
    assert len(resets) == 1


def test_a_peak_below_an_earlier_one_of_the_process_is_no_value(allocator):
    allocator(counts(25, 5), counts(25, 6))

    assert measured(id) == Outcome(status=Status.OK, notes=(f"{HIDDEN}: at most 20 bytes",))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"bytes_in_use": 1}, counts(2, 2)),
        ({"peak_bytes_in_use": 1}, counts(2, 2)),
        (counts(1, 1), {"bytes_in_use": 2}),
        (counts(1, 1), None),
    ],
)
def test_an_allocator_that_tells_no_peak_is_no_counter(allocator, before, after):
    allocator(before, after)

    assert measured(id) == Outcome(status=Status.UNSUPPORTED, reason=NO_COUNTER)


# The process's memory


@pytest.fixture
def grows(monkeypatch):
    """A process that grows as told, and a device whose allocator tells nothing."""
    monkeypatch.setattr(jax, "devices", lambda: [Device(memory_stats=lambda: None)])
    monkeypatch.setattr(measured_memory, "_return_memory_at_once", lambda: None)
    measured_memory._check_counter.cache_clear()  # a process of its own

    def by(*growths):
        each = iter(growths)

        def scaling(call, libc):
            call()
            return next(each)

        monkeypatch.setattr(measured_memory, "_scaling", scaling)

    return by


# The first trial makes the memory that the second one shows to be taken again.
TRIALS = (0, TRIAL_BYTES)


def test_the_call_that_holds_most_counts(grows):
    grows(*TRIALS, 2 * MIB, 5 * MIB, 3 * MIB)

    assert measured(id).values == {"measured_peak_bytes": (ARGUMENT.nbytes + 5 * MIB,)}


def test_the_counter_is_tried_once_in_a_process(grows):
    grows(*TRIALS, *[2 * MIB] * CALLS, *[3 * MIB] * CALLS)

    found = [measured(id) for _ in range(2)]

    assert [one.values["measured_peak_bytes"] for one in found] == [
        (ARGUMENT.nbytes + grown * MIB,) for grown in (2, 3)
    ]


@pytest.mark.parametrize(("call_s", "calls"), [(SLOW_S, CALLS), (2 * SLOW_S, 1)])
def test_a_slow_call_is_read_once(grows, clock, call_s, calls):
    grows(*TRIALS, *[2 * MIB] * CALLS)
    made = []

    def call(argument):
        made.append(argument)
        clock.advance(call_s)

    measured(call, clock=clock)

    before = ["to have memory to take again", "to see whether it is slow"]
    assert len(made) == len(before) + calls


@pytest.mark.parametrize(("scaling", "is_told"), [(SMALLEST_BYTES - 1, False), (SMALLEST_BYTES, True)])
def test_a_scaling_within_the_kernels_error_is_no_value(grows, scaling, is_told):
    grows(*TRIALS, *[scaling] * CALLS)

    found = measured(id)

    assert found.status is Status.OK
    assert found.notes == (() if is_told else (TOO_SMALL,))
    assert bool(found.values) is is_told


@pytest.mark.parametrize("repeated", [0, TRIAL_BYTES // 2 - 1])
def test_a_counter_that_does_not_show_memory_taken_again_is_no_counter(grows, repeated):
    grows(TRIAL_BYTES, repeated, *[2 * MIB] * CALLS)

    assert measured(id) == Outcome(status=Status.UNSUPPORTED, reason=NO_COUNTER)


def test_a_system_that_does_not_tell_what_a_process_holds_has_no_counter(grows, monkeypatch):
    def scaling(call, libc):
        raise measured_memory.NoCounterError

    grows()
    monkeypatch.setattr(measured_memory, "_scaling", scaling)

    assert measured(id) == Outcome(status=Status.UNSUPPORTED, reason=NO_COUNTER)


def test_a_peer_is_read_from_the_process_even_beside_a_device(grows, allocator):
    grows(*TRIALS, *[2 * MIB] * CALLS)
    allocator(counts(10, 1), counts(25, 1))

    found = measured(id, returns_early=False)

    assert found.values == {"measured_peak_bytes": (ARGUMENT.nbytes + 2 * MIB,)}
