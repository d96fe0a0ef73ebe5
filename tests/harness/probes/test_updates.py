from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxmeter
from jaxmeter.harness.probes.updates import ALLOWED, Olds
from jaxmeter.harness.record import Status
from tests.harness.conftest import time_few_blocks
from tests.harness.probes.test_conditioning import look

KEYS = jax.random.split(jax.random.key(0), 4)
WEIGHTS = {"in": jax.random.normal(KEYS[0], (8, 16)) / 3, "out": jax.random.normal(KEYS[1], (16, 4)) / 4}
X, Y = jax.random.normal(KEYS[2], (32, 8)), jax.random.normal(KEYS[3], (32, 4))
RATE = 1e-5


@pytest.fixture(autouse=True, scope="module")
def few_blocks():
    with time_few_blocks():
        yield


def loss(weights, x, y):
    return jnp.mean((jnp.tanh(x @ weights["in"]) @ weights["out"] - y) ** 2)


def step(weights, x, y, rate=RATE):
    value, gradient = jax.value_and_grad(loss)(weights, x, y)
    return jax.tree.map(lambda old, slope: old - rate * slope, weights, gradient), value


def right(weights, x, y):
    return step(weights, x, y)


def other_order(weights, x, y):
    """The same, rounded another way."""
    order = jnp.arange(x.shape[0])[::-1]
    return step(weights, x[order], y[order])


def frozen(weights, x, y):
    return weights, loss(weights, x, y)


def reversed_sign(weights, x, y):
    return step(weights, x, y, -RATE)


def stale_layer(weights, x, y):
    updated, value = step(weights, x, y)
    return {**updated, "in": weights["in"]}, value


def step_in_numpy(weights, x, y):
    hidden = np.tanh(x @ weights["in"])
    residual = hidden @ weights["out"] - y
    slope = 2 * residual / residual.size
    before = (slope @ weights["out"].T) * (1 - hidden**2)
    updated = {"in": weights["in"] - RATE * x.T @ before, "out": weights["out"] - RATE * hidden.T @ slope}
    return updated, (residual**2).mean()


FAULTS = (frozen, reversed_sign, stale_layer)


def test_an_update_smaller_than_the_tolerance_is_compared_by_itself():
    found = look(right, other_order, *FAULTS, inputs=(WEIGHTS, X, Y), reference=step_in_numpy)

    assert [outcome.status for outcome in found.values()] == [Status.OK] * 2 + [Status.WRONG] * 3
    assert all("its update differs from the reference's" in outcome.reason for outcome in list(found.values())[2:])
    assert not any(outcome.notes for outcome in found.values())


def numerics_of(functions, *arguments):
    """What `jaxmeter.measure` finds of jitted functions by name."""
    record = jaxmeter.measure.with_options(modes=("jit",))(functions, *arguments).record
    return {one.name.removesuffix(":jit"): one.outcomes["numerics"] for one in record.variants}


def test_a_tolerance_that_is_given_leaves_updates_unchecked():
    found = look(right, frozen, inputs=(WEIGHTS, X, Y), reference=step_in_numpy, tolerance=1e-4)

    assert {outcome.status for outcome in found.values()} == {Status.OK}


def test_an_update_that_bfloat16_cannot_hold_is_noted_and_not_wrong_unless_its_argument_is_passed_on():
    narrow = jax.tree.map(lambda leaf: leaf.astype("bfloat16"), (WEIGHTS, X, Y))

    outcomes = numerics_of({"right": right, "frozen": frozen, "reversed": reversed_sign}, *narrow)

    assert {outcome.status for outcome in outcomes.values()} == {Status.OK}
    assert all("updates: 2 of 3 outputs" in outcome.notes[-1] for outcome in outcomes.values())
    assert numerics_of({"frozen": frozen}, *narrow)["frozen"].notes == ()


def adam(weights, x, y, *, compute, seed=0):
    """The first step of Adam, of which the direction of small gradients is rounding."""
    order = jax.random.permutation(jax.random.key(seed), x.shape[0])
    narrow = jax.tree.map(lambda leaf: leaf.astype(compute), (weights, x[order], y[order]))
    gradient = jax.tree.map(lambda leaf: leaf.astype("float32"), jax.grad(loss)(*narrow))
    optimiser = optax.adam(RATE)
    updates, _ = optimiser.update(gradient, optimiser.init(weights))
    return optax.apply_updates(weights, updates)


@pytest.mark.slow
@pytest.mark.parametrize("compute", ["float32", "bfloat16"])
def test_signs_that_rounding_turns_are_not_wrong(compute):
    functions = {str(seed): partial(adam, compute=compute, seed=seed) for seed in range(4)}

    outcomes = numerics_of(functions, WEIGHTS, X, Y)

    assert {outcome.status for outcome in outcomes.values()} == {Status.OK}


def follow_rounding(weights, *, sign, compute, frequency):
    """A step whose direction is rounding: a unit in the last place of a weight turns it."""
    slope = jnp.sin(frequency * weights.astype(compute))
    return weights - sign * RATE * jnp.sign(slope).astype("float32")


@pytest.mark.parametrize(("compute", "frequency"), [("float32", 3e7), ("bfloat16", 1e3)])
def test_an_update_whose_direction_is_rounding_cannot_be_checked(compute, frequency):
    weights = jax.random.uniform(KEYS[0], (64,), minval=1.0, maxval=2.0)
    make = partial(partial, follow_rounding, compute=compute, frequency=frequency)

    outcomes = numerics_of({"a": make(sign=1.0), "b": make(sign=-1.0)}, weights)

    first, second = outcomes.values()
    assert (first.status, second.status) == (Status.OK, Status.OK)
    assert first.notes == ()
    assert "updates: 1 of 1 output is so near to an argument" in second.notes[-1]


def test_the_share_is_of_the_references_update():
    old = jax.random.normal(jax.random.key(0), (64,))
    want = np.asarray(old, "float64") * (1 + 1e-5)
    olds = Olds([old])

    shares = [
        olds.find_update(np.asarray(old * (1 + times * 1e-5)), want, 2e-5).share for times in (-1.0, 0.0, 1.0, 2.0)
    ]

    np.testing.assert_allclose(shares, [-1, 0, 1, 2], atol=0.02)
    assert ALLOWED < 1


@pytest.mark.parametrize(
    ("got", "want"),
    [
        (np.ones(64, "float32") * 1.1, np.ones(64) * 1.1),  # no small change
        (np.ones(64, "float16"), np.ones(64)),  # another dtype
        (np.ones(63, "float32"), np.ones(63)),  # another shape
        (np.ones(64, "float32"), np.ones(64)),  # none
        (np.full(64, np.nan, "float32"), np.full(64, np.nan)),
    ],
)
def test_other_outputs_are_no_updates(got, want):
    assert Olds([np.ones(64, "float32")]).find_update(got, want, 2e-5) is None


def test_of_several_arguments_the_nearest_is_updated():
    near = np.linspace(1, 2, 64, dtype="float32")
    other = np.linspace(1, 2, 64, dtype="float32") + np.float32(1e-5)
    want = near.astype("float64") + 2e-6

    assert Olds([other, near]).find_update(near, want, 2e-5).old is near
