"""State that goes from one call to the next, and memory that calls take."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmeter import Peer, State, workload
from jaxmeter.harness.machine.platforms import BACKENDS
from jaxmeter.harness.probes import Context, run_probes
from jaxmeter.harness.programs.arguments import make_inputs
from jaxmeter.harness.programs.jax_events import watch_jax
from jaxmeter.harness.programs.modes import Carried, How, prepare_as
from jaxmeter.harness.record import NumericsDetails, Status

CARRIED = How(carry={0: 0})
DONATED = How(carry={0: 0}, donate=(0,))


def step(total, value):
    """A running sum, and the step that it took."""
    return total + value, 2 * value


def prepared(mode, how, function=step, args=None):
    args = (jnp.float32(1), jnp.float32(2)) if args is None else args
    return prepare_as(mode, function, args, how, lambda: 0.0, lambda stage: None)


def called(ready, times):
    return [[float(output) for output in ready.wait(ready.call(*ready.args))] for _ in range(times)]


@pytest.mark.parametrize("mode", ["eager", "jit", "aot", "mixed", "native"])
def test_a_call_begins_with_what_the_one_before_gave_and_after_a_reset_with_the_inputs(mode):
    ready = prepared(mode, CARRIED)
    assert called(ready, 3) == [[3, 4], [5, 4], [7, 4]]

    ready.reset()

    assert called(ready, 1) == [[3, 4]]


@pytest.mark.parametrize("stream", [False, True])
def test_only_what_is_carried_is_copied_and_what_was_held_is_free_before(monkeypatch, stream):
    copied, freed = [], []
    args = (jnp.float32(1), jnp.float32(2))
    ready = prepared("jit", How(carry={0: 0}, stream=stream), args=(args, args) if stream else args)
    carried = ready.reset.func.__self__
    real = jax.device_put
    ready.reset()

    def device_put(leaf, **how):
        copied.append(leaf)
        freed.append(carried.state == {})
        return real(leaf, **how)

    monkeypatch.setattr(jax, "device_put", device_put)
    ready.reset()

    assert [leaf is args[0] for leaf in copied] == [True]
    assert freed == [True]


@pytest.mark.parametrize("mode", ["jit", "aot"])
def test_donated_memory_is_taken_and_the_inputs_stay(mode):
    ready = prepared(mode, DONATED)
    first = ready.call(*ready.args)

    called(ready, 1)

    assert first[0].is_deleted()
    assert not any(leaf.is_deleted() for leaf in ready.args)
    ready.reset()
    assert called(ready, 1) == [[3, 4]]


def test_a_program_that_donates_says_so():
    large = (jnp.ones(1000, jnp.float32), jnp.float32(2))

    aliased = [prepared("jit", how, args=large).stages.compiled.memory_analysis() for how in (CARRIED, DONATED)]

    assert [plan.alias_size_in_bytes for plan in aliased] == [0, 4000]


def test_what_a_call_begins_with_is_copied_before_it_and_compiles_nothing():
    ready = prepared("jit", DONATED, args=(jnp.ones(1000, jnp.float32), jnp.float32(2)))
    ready.call(*ready.args)

    with watch_jax() as seen:
        ready.reset()
        kept = ready.call.state[0]
        ready.call(*ready.args)

    assert seen.compiled == 0
    assert kept.is_deleted()


def test_a_result_that_is_no_tuple_is_output_0():
    ready = prepared("jit", CARRIED, function=lambda total: 2 * total, args=(jnp.float32(3),))

    assert [float(ready.call(*ready.args)) for _ in range(3)] == [6, 12, 24]


def test_a_peer_may_change_its_arguments_in_place():
    def add(total):
        total += 1
        return total

    ready = prepared("native", CARRIED, function=add, args=(np.zeros(2),))
    assert [ready.call(*ready.args)[0] for _ in range(2)] == [1, 2]

    ready.reset()

    assert ready.call(*ready.args)[0] == 1


def test_a_peers_arguments_are_made_anew_by_its_own_conversion():
    made = []

    def convert(total, value):
        made.append(total)
        return [float(total)], float(value)

    def add(total, value):
        total[0] += value
        return total, total[0]

    ready = prepared("native", How(carry={0: 0}, convert=convert), add, (np.float32(1), np.float32(2)))
    ready.call(*ready.args)
    ready.call(*ready.args)
    before = len(made)

    ready.reset()

    assert ready.call(*ready.args)[1] == 3
    assert len(made) == before + 1


# Streams


@pytest.mark.parametrize("mode", ["eager", "jit", "mixed"])
def test_in_a_stream_the_state_goes_from_item_to_item_and_from_pass_to_pass(mode):
    items = tuple((jnp.float32(1), jnp.float32(value)) for value in (2, 3))
    ready = prepared(mode, How(carry={0: 0}, stream=True), args=items)

    passes = [ready.wait(ready.call(*ready.args)) for _ in range(2)]

    assert [(rest, state) for rest, state in passes] == [([[4], [6]], [6]), ([[4], [6]], [11])]


def test_a_stream_may_return_nothing_but_its_state():
    items = tuple((jnp.arange(2.0), jnp.float32(value)) for value in (2, 3))
    ready = prepared("jit", How(carry={0: 0}, stream=True), lambda total, value: total + value, items)

    rest, (total,) = ready.wait(ready.call(*ready.args))

    assert rest == [[], []]
    assert total.tolist() == [5, 6]


def test_a_stream_that_donates_leaves_its_items():
    items = tuple((jnp.float32(1), jnp.float32(value)) for value in (2, 3))
    ready = prepared("jit", How(carry={0: 0}, donate=(0,), stream=True), args=items)

    first = ready.wait(ready.call(*ready.args))
    ready.reset()

    assert ready.wait(ready.call(*ready.args)) == first


def test_carried_state_is_begun_once():
    begun = []

    def begin(args):
        begun.append(args)
        return args

    carried = Carried(lambda total: total + 1, {0: 0}, begin)

    assert [carried(1), carried(1), carried(1)] == [2, 3, 4]
    assert begun == [(1,)]


# Declared


def context_of(made):
    return Context(made, {}, BACKENDS["cpu"], make_inputs(made, {}), time.perf_counter, None)


def outcome(made, variant):
    found, _ = run_probes({"numerics": (variant,), "memory": (variant,)}, context_of(made))
    return found[variant]["numerics"]


def running_sum(**changes):
    declared = {
        "inputs": lambda key: (jnp.arange(3.0), jnp.float32(2)),
        "reference": step,
        "state": State(carry={"total": 0}, donate=("total",)),
        "modes": ("eager", "jit", "aot"),
        **changes,
    }
    return workload(**declared)(step)


@pytest.mark.parametrize("variant", ["step:eager", "step:jit", "step:aot"])
def test_a_step_that_carries_state_is_checked_from_its_inputs(variant):
    assert outcome(running_sum(), variant).status is Status.OK


@pytest.mark.parametrize("drift", [0, 1])
def test_in_a_stream_the_reference_carries_its_state_too(drift):
    def drifting(total, value):
        return total + value + drift, 2 * value

    made = running_sum(
        inputs=lambda key: [(jnp.arange(3.0), jnp.float32(value)) for value in (1, 2, 3)],
        stream=True,
        modes=("jit",),
        state=State(carry={"total": 0}),
    )
    made.implementation(drifting)

    assert outcome(made, "drifting:jit").status is (Status.WRONG if drift else Status.OK)


def test_a_peer_gets_what_its_conversion_makes_of_the_inputs():
    def of_lists(total, value):
        return np.array([x + value for x in list.copy(total)]), 2 * value

    made = running_sum(
        peers={"lists": Peer(of_lists, convert=lambda total, value: (total.tolist(), float(value)))},
        state=State(),
    )

    assert outcome(made, "lists:native").status is Status.OK


@pytest.mark.parametrize(
    ("compare", "reference", "reason"),
    [
        (lambda result: result[1], lambda total, value: 2 * value, None),
        (lambda result, *, inputs: result[0] - inputs[0], lambda total, value: 0 * total + value, None),
        (
            lambda result: result[2],
            lambda total, value: 2 * value,
            "compare() cannot read the result: tuple index",
        ),
    ],
    ids=["a part of the result", "what became of the inputs", "a form that the result does not have"],
)
def test_what_is_compared_may_be_made_of_the_result(compare, reference, reason):
    found = outcome(running_sum(compare=compare, reference=reference), "step:jit")

    assert found.status is (Status.OK if reason is None else Status.WRONG)
    assert reason is None or found.reason.startswith(reason)


def raise_type_error(total, value):
    raise TypeError("not\nthis type")


def raise_value_error(total, value):
    raise ValueError("no")


@pytest.mark.parametrize(
    ("function", "status", "words"),
    [
        (raise_type_error, Status.OK, "not this type"),
        (step, Status.WRONG, "raised nothing; it is declared to raise TypeError"),
        (raise_value_error, Status.FAILED, "in stage 'numerics': ValueError: no"),
    ],
    ids=["the declared", "none", "another"],
)
def test_an_error_that_is_declared_is_a_result_with_its_words(function, status, words):
    made = running_sum()
    made.implementation(function, name="raises", raises=TypeError, modes=("jit",))

    found = outcome(made, "raises:jit")

    assert (found.status, found.notes) == (status, ())
    if status is Status.OK:
        assert found.details == NumericsDetails(raised=words)
    else:
        assert words.rpartition(": ")[2] in found.reason


def test_a_prepared_variant_knows_its_platforms_by_the_decorated_functions_names():
    made = running_sum(inputs=lambda key: (jnp.float32(1), jnp.float32(2)))
    made.implementation(lambda a, b: (a + b, 2 * b), name="renamed", modes=("jit",), donate=("total",))

    ready = context_of(made).prepare("renamed:jit")

    assert called(ready, 2) == [[3, 4], [5, 4]]


def test_a_peer_that_carries_may_have_a_random_key():
    ready = prepared("native", CARRIED, lambda total, key: (total + 1, key), (np.zeros(2), jax.random.key(0)))

    assert [ready.call(*ready.args)[0][0] for _ in range(2)] == [1, 2]
