import time
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

from harness.backends import BACKENDS
from harness.messages import CHECK
from harness.probes import Context
from harness.probes.context import widest
from harness.record import Status
from harness.variants import inputs, outcomes_of
from suites import cnn, models


def outcome_of(workload, function, **params):
    """What the check says of a NumPy function in place of a workload's implementations."""
    tried = replace(workload, implementations=[])
    tried.implementation(lambda *arguments: function(*exact(*arguments)), name="tried", modes=("mixed",))
    context = Context(tried, params, BACKENDS["cpu"], inputs(tried, params), time.perf_counter, Path())
    return outcomes_of("tried:mixed", CHECK, ("numerics",), context)["numerics"]


def exact(*arrays):
    return jax.tree.map(widest, arrays)


# The reference


@pytest.mark.parametrize("model", [cnn.PLAIN, cnn.BATCH_NORM], ids=["plain", "batch norm"])
def test_the_reference_gradient_is_the_slope_of_the_reference_loss(model):
    state, images, labels = exact(*cnn.training(jax.random.key(0), batch=3, model=model))
    generator = np.random.default_rng(1)
    factors = 2.0 * (generator.random((3, models.CNN_HIDDEN)) < 0.5)
    direction = jax.tree.map(lambda leaf: generator.normal(size=leaf.shape), state.params)

    def loss(distance):
        params = jax.tree.map(lambda leaf, way: leaf + distance * way, state.params, direction)
        return cnn.gradient_in_numpy(cnn.network(params, images, factors), labels)

    gradient = loss(0.0)[1]
    along = sum(np.vdot(g, way) for g, way in zip(*map(jax.tree.leaves, (gradient, direction)), strict=True))
    step = 1e-8  # so short that few values change their sign or their place among four
    assert along == pytest.approx((loss(step)[0] - loss(-step)[0]) / (2 * step), rel=1e-4)


def test_a_pool_sends_its_slope_to_the_first_of_equal_values_and_nowhere_without_a_positive_one():
    square = np.array([[[[1.0, -1.0], [2.0, -2.0]], [[2.0, -3.0], [0.0, -4.0]]]])

    pooled, _, of_input = cnn.rectified_pool(square)
    slope = of_input(np.ones_like(pooled))

    np.testing.assert_array_equal(pooled, [[[[2.0, 0.0]]]])
    np.testing.assert_array_equal(slope, [[[[0.0, 0.0], [1.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]]])


# What is caught


def test_the_reference_as_an_implementation_is_right():
    assert outcome_of(cnn.cnn_step, cnn.step_in_numpy, batch=2).status is Status.OK


def test_adam_without_bias_correction_is_wrong():
    def uncorrected(state, images, labels):
        after, loss = cnn.step_in_numpy(state, images, labels)
        adam = after.optimiser[0]

        def moved(old, m, v):
            return old - cnn.LEARNING_RATE * m / (np.sqrt(v) + cnn.EPSILON)

        return after._replace(params=jax.tree.map(moved, state.params, adam.mu, adam.nu)), loss

    assert outcome_of(cnn.cnn_step, uncorrected, batch=2).status is Status.WRONG


def test_a_summed_loss_is_wrong():
    def summed(state, images, labels):
        after, loss = cnn.step_in_numpy(state, images, labels)
        return after, len(labels) * loss

    assert outcome_of(cnn.cnn_step, summed, batch=2).status is Status.WRONG


def test_a_step_that_drops_other_values_is_wrong():
    def other(state, images, labels, key):
        return cnn.dropout_step_in_numpy(state, images, labels, jax.random.fold_in(key, 1))

    assert outcome_of(cnn.cnn_step_dropout, cnn.dropout_step_in_numpy, batch=2).status is Status.OK
    assert outcome_of(cnn.cnn_step_dropout, other, batch=2).status is Status.WRONG


def test_a_step_that_forgets_the_running_moments_is_wrong():
    def forgetful(state, images, labels):
        after, loss = cnn.step_in_numpy(state, images, labels)
        return after._replace(batch_stats=state.batch_stats), loss

    assert outcome_of(cnn.cnn_step_batch_norm, cnn.step_in_numpy, batch=2).status is Status.OK
    assert outcome_of(cnn.cnn_step_batch_norm, forgetful, batch=2).status is Status.WRONG


def test_an_epoch_whose_steps_do_not_follow_from_each_other_is_wrong():
    def never_updated(state, images, labels):
        return state, cnn.step_in_numpy(state, images, labels)[1]

    assert outcome_of(cnn.cnn_epoch, cnn.step_in_numpy, images=16).status is Status.OK
    assert outcome_of(cnn.cnn_epoch, never_updated, images=16).status is Status.WRONG


def test_of_an_epoch_the_first_losses_are_checked_and_no_more(monkeypatch):
    monkeypatch.setattr(cnn, "BATCHES_CHECKED", 1)

    def wrong_from(number):
        def step(state, images, labels):
            right = state.optimiser[0].count < number
            after, loss = cnn.step_in_numpy(state, images, labels)
            return after, loss if right else 0.0

        return step

    assert outcome_of(cnn.cnn_epoch, wrong_from(0), images=16).status is Status.WRONG
    assert outcome_of(cnn.cnn_epoch, wrong_from(1), images=16).status is Status.OK


# Inputs and cost


def test_an_epoch_has_batches_of_128_and_a_small_one_two():
    sizes = {images: [len(item[1]) for item in cnn.epoch(jax.random.key(0), images=images)] for images in (16, 384)}

    assert sizes == {16: [8, 8], 384: [128, 128, 128]}
    assert cnn.cnn_epoch.params["images"].full == (351 * 128,)


def test_an_epoch_costs_as_much_as_its_steps():
    assert cnn.epoch_cost(384).flops == 3 * cnn.step_cost(128).flops
    assert cnn.epoch_cost(16).flops == 2 * cnn.step_cost(8).flops


def test_the_cost_counts_the_parameters_that_there_are():
    state = models.cnn_state(jax.random.key(0), cnn.PLAIN)

    assert sum(leaf.size for leaf in jax.tree.leaves(state.params)) == cnn.PARAMETERS


def test_the_cost_of_a_convolution_is_what_its_kernel_sees_of_the_image():
    seen = cnn.windows(np.ones((1, *models.CNN_IMAGE))).sum()

    assert cnn.product_flops(5)[0] == 2 * 5 * seen * models.CNN_CHANNELS[0]


def test_what_pytorch_trains_is_seen_through_the_views_that_are_compared():
    pytest.importorskip("torch")
    arguments = cnn.training(jax.random.key(0), batch=2)
    state, images, labels = cnn.as_torch(*arguments)
    before = jax.tree.map(lambda leaf: np.asarray(leaf).copy(), state)

    after, _ = cnn.torch_step(state, images, labels)

    for old, new in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        assert not np.array_equal(old, np.asarray(new))
