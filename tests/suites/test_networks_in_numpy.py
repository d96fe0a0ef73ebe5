from functools import partial

import jax
import numpy as np
import pytest

from jaxmeter.suites import networks_in_numpy as networks

STEP = 1e-7
"""So short that few values change their sign or their place among four."""


@pytest.fixture
def random():
    return np.random.default_rng(0)


def layer(random, *shape, **others):
    return {"kernel": random.normal(size=shape), "bias": random.normal(size=shape[-1]), **others}


def along(one, other):
    return sum(np.vdot(a, b) for a, b in zip(*map(jax.tree.leaves, (one, other)), strict=True))


def moved(tree, direction, distance):
    return jax.tree.map(lambda leaf, way: leaf + distance * way, tree, direction)


LAYERS = {
    "dense": (networks.dense, lambda random: layer(random, 5, 3), (4, 5)),
    "dense without bias": (networks.dense, lambda random: {"kernel": random.normal(size=(5, 3))}, (4, 5)),
    "convolution": (networks.convolution, lambda random: layer(random, 3, 3, 2, 5), (3, 4, 6, 2)),
    "normalisation": (
        networks.normalisation,
        lambda random: {"scale": random.normal(size=2), "bias": random.normal(size=2)},
        (3, 4, 6, 2),
    ),
    "average pool": (lambda _, x: networks.average_pool(x), lambda _: {}, (3, 4, 6, 2)),
    "relu with dropout": (lambda _, x: networks.relu(x, np.array([0.0, 2.0])), lambda _: {}, (6, 2)),
    "swish": (lambda _, x: networks.swish(x), lambda _: {}, (6, 2)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_the_slopes_of_a_layer_are_those_of_central_differences(name, random):
    function, make, shape = LAYERS[name]
    at = make(random), random.normal(size=shape)
    direction = jax.tree.map(lambda leaf: random.normal(size=leaf.shape), at)
    passed = function(*at)
    cotangent = random.normal(size=passed.output.shape)

    slopes = passed.to_params(cotangent) if passed.to_params else {}, passed.to_inputs(cotangent)

    after, before = (np.vdot(function(*moved(at, direction, way)).output, cotangent) for way in (STEP, -STEP))
    assert along(slopes, direction) == pytest.approx((after - before) / (2 * STEP), rel=1e-6)


NETWORKS = {
    "mlp": (
        partial(networks.mlp, activation=networks.swish),
        lambda random: {"Dense_0": layer(random, 5, 4), "Dense_1": layer(random, 4, 3)},
        (6, 5),
    ),
    "cnn": (
        partial(networks.cnn, factors=2.0),
        lambda random: {
            "Conv_0": {"kernel": random.normal(size=(3, 3, 2, 3))},
            "BatchNorm_0": {"scale": random.normal(size=3), "bias": random.normal(size=3)},
            "Conv_1": layer(random, 3, 3, 3, 2),
            "Dense_0": layer(random, 2, 4),
            "Dense_1": layer(random, 4, 3),
        },
        (6, 4, 4, 2),
    ),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_the_gradient_of_a_network_is_the_slope_of_its_loss(name, random):
    network, make, shape = NETWORKS[name]
    params, inputs, labels = make(random), random.normal(size=shape), np.array([0, 1, 2, 0, 1, 2])
    direction = jax.tree.map(lambda leaf: random.normal(size=leaf.shape), params)

    def gradient(params):
        return networks.gradient(networks.forward(network(params), inputs), labels)

    _, slopes = gradient(params)

    after, before = (gradient(moved(params, direction, way))[0] for way in (STEP, -STEP))
    assert along(slopes, direction) == pytest.approx((after - before) / (2 * STEP), rel=1e-6)


def test_a_pool_takes_the_mean_of_four_and_shares_its_slope_among_them():
    square = np.array([[[[1.0, -1.0], [2.0, -2.0]], [[2.0, -3.0], [3.0, -4.0]]]])

    pooled = networks.average_pool(square)

    np.testing.assert_array_equal(pooled.output, [[[[2.0, -2.5]]]])
    np.testing.assert_array_equal(pooled.to_inputs(np.array([[[[4.0, 8.0]]]])), [[[[1.0, 2.0]] * 2] * 2])


def test_losses_of_logits_whose_exponential_overflows_are_finite():
    logits, labels = np.array([[1_000.0, 0.0], [1_000.0, 0.0]]), np.array([0, 1])

    np.testing.assert_array_equal(networks.cross_entropy(logits, labels), [0.0, 1_000.0])
    np.testing.assert_array_equal(networks.softmax(logits), [[1.0, 0.0]] * 2)
    np.testing.assert_array_equal(networks.logistic(np.array([-1_000.0, 0.0, 1_000.0])), [0.0, 0.5, 1.0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_length_has_the_format_of_its_change_so_that_its_tolerance_is_that_of_the_result(dtype):
    before, after = (({"params": np.full(4, number, dtype)}, ()) for number in (1, 4))

    length = networks.lengths(after, before)

    assert (length.dtype, float(length)) == (dtype, 3)


def test_directions_differ_as_the_trees_do_and_lengths_are_told_apart(random):
    tree = {"kernel": random.normal(size=(50, 40)), "bias": random.normal(size=7)}
    near = jax.tree.map(lambda leaf: leaf + 0.01 * random.normal(size=leaf.shape), tree)
    length, direction = networks.length_and_direction(tree)

    assert length == pytest.approx(1, abs=0.05)
    assert networks.length_and_direction(near)[1] == pytest.approx(direction, abs=0.01)
    assert networks.length_and_direction(jax.tree.map(lambda leaf: 3 * leaf, tree))[0] == pytest.approx(3 * length)
    assert networks.length_and_direction(jax.tree.map(lambda leaf: 3 * leaf, tree))[1] == pytest.approx(direction)


def test_one_entry_that_is_zero_instead_is_a_small_part_of_the_direction_and_half_of_them_a_large_one(random):
    entries = random.normal(size=2_000)
    one, half = (np.where(np.arange(2_000) < count, 0, entries) for count in (1, 1_000))
    directions = [networks.length_and_direction(tree)[1] for tree in (entries, one, half)]

    assert np.linalg.norm(directions[1] - directions[0]) < 0.1
    assert np.linalg.norm(directions[2] - directions[0]) > 0.4


# Epochs


def test_of_a_long_epoch_the_first_losses_alone_are_compared():
    found = networks.first_losses({"w": 4.0}, [1.0, 2.0, 3.0], [2.0], {"w": 1.0}, compare=lambda *both: both, checked=2)
    short = networks.first_losses({"w": 4.0}, [1.0, 2.0], [1.5], {"w": 1.0}, compare=lambda *both: both, checked=2)

    assert np.nan_to_num(jax.tree.leaves(found), nan=-1).tolist() == [-1, -1, 1, 2, -1, -1]
    assert short == (({"w": 4.0}, {"w": 1.0}), [1.0, 2.0], [1.5])
