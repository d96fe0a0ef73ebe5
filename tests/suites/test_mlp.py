import shutil
from importlib import util
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from harness import Skip
from harness.compilations import watched
from harness.probes.context import widest
from harness.probes.numerics import TOLERANCE, relative_error
from suites import mlp, mlp_networks, models, peers

KEY = jax.random.key(0)


def relative_difference(got, want):
    """Of two pytrees, the largest."""
    pairs = zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True)
    return max(relative_error(widest(one), widest(other))[0] for one, other in pairs)


def in_float64(tree):
    return jax.tree.map(widest, tree)


# Training


@pytest.mark.parametrize("network", mlp_networks.NETWORKS)
def test_the_losses_of_a_network_fall_over_100_steps(network):
    state, images, labels = mlp.epoch_on_device(KEY, network=network, batches=100)

    def epoch(state, *batches):
        return jax.lax.scan(lambda carried, batch: mlp.step_of(network)(carried, *batch), state, batches)

    _, losses = jax.jit(epoch)(state, images, labels)

    tenths = np.asarray(losses).reshape(10, 10).mean(1)
    assert tenths[-1] < 0.95 * tenths[0]
    assert tenths[-1] == min(tenths)


def test_the_losses_of_the_toy_network_fall_over_100_steps():
    batches = mlp.toy_batches(KEY, n=100 * mlp_networks.TOY.batch)
    state, losses, step = batches[0][0], [], jax.jit(mlp.toy_step)

    for _, points, classes in batches:
        state, loss = step(state, points, classes)
        losses.append(float(loss))

    assert np.mean(losses[-10:]) < 0.8 * np.mean(losses[:10])


def test_the_compile_cache_of_the_toy_epoch_has_one_program_after_the_first_batch_and_two_after_the_last():
    batches = mlp.toy_batches(KEY, n=mlp.TOY_POINTS)
    state, compiled = batches[0][0], []
    step = jax.jit(
        models.train_step(mlp_networks.TOY.model, mlp.ADAM, models.mean_cross_entropy)
    )  # not compiled by others

    with watched() as seen:
        for _, points, classes in batches:
            state, _ = step(state, points, classes)
            compiled.append(seen.compiled)

    assert len(batches) == 63
    assert (compiled[0], compiled[-2], compiled[-1]) == (1, 1, 2)


def test_about_half_of_the_toy_points_are_of_each_class():
    classes = np.concatenate([batch[2] for batch in mlp.toy_batches(KEY, n=mlp.TOY_POINTS)])

    # Five standard deviations of a fair coin.
    assert abs(classes.mean() - 0.5) < 5 * 0.5 / np.sqrt(mlp.TOY_POINTS)


def test_a_donated_step_writes_the_new_params_over_the_old_ones():
    arguments = mlp.one_batch(KEY, network="784-512-10")
    implementation, _ = mlp.mlp_step.variant("donated:jit")

    def step(*args):
        return implementation.function(*args, network="784-512-10")

    places = mlp.mlp_step.positions(implementation.donate)
    planned = jax.jit(step, donate_argnums=places).lower(*arguments).compile().memory_analysis()

    assert planned.alias_size_in_bytes == 4 * mlp_networks.params_in((784, 512, 10))


# The reference


def test_adam_by_hand_moves_every_param_by_the_learning_rate_at_first():
    state, points, classes = mlp.toy_batches(KEY, n=mlp_networks.TOY.batch)[0]
    before = in_float64(state)

    (variables, _), _ = mlp.toy_step_in_numpy(before, widest(points), widest(classes))

    moved = np.abs(variables["params"]["Dense_0"]["kernel"] - before[0]["params"]["Dense_0"]["kernel"])
    # Bias-corrected, the first mean is the gradient and the root of the first square its size.
    assert moved == pytest.approx(np.full_like(moved, mlp.ADAM_RATE), rel=1e-4)


def loss_of_jax_in_action(logits, labels):
    """As its chapter 2 has it, with a sum: `logsumexp` without an axis runs over the whole batch."""
    return -jnp.sum(jax.nn.one_hot(labels, mlp_networks.CLASSES) * (logits - jax.nn.logsumexp(logits)))


@pytest.mark.parametrize("loss", [loss_of_jax_in_action, models.mean_cross_entropy])
def test_a_step_on_another_loss_is_caught(loss):
    network = "784-512-10"
    arguments = mlp.one_batch(KEY, network=network)
    wanted = mlp.step_in_numpy(*in_float64(arguments), network=network)

    right = mlp.step_of(network)(*arguments)
    wrong = models.train_step(mlp_networks.NETWORKS[network].model, mlp.SGD, loss)(*arguments)

    assert relative_difference(right, wanted) < TOLERANCE["float32"]
    assert relative_difference(wrong, wanted) > TOLERANCE["tensorfloat32"]


# Cost


def test_cost_counts_the_params_that_flax_makes():
    state = mlp.mnist_state(KEY, "784-512-512-10")

    assert mlp_networks.params_in((784, 512, 512, 10)) == sum(leaf.size for leaf in jax.tree.leaves(state[0]))


def test_a_step_does_three_products_a_layer_but_two_in_the_first():
    assert mlp_networks.step_flops((784, 512, 10), examples=32) == 2 * 32 * (2 * 784 * 512 + 3 * 512 * 10)


# PyTorch


@pytest.mark.parametrize("name", ["torch:native", "torch.compile:native"])
def test_losses_of_7_steps_agree_with_those_of_pytorch(name):
    network = "784-512-512-10"
    peer, _ = mlp.mlp_epoch.variant(name)
    if skip := peer.skip({}, "cpu"):
        pytest.skip(skip.reason)
    batches = mlp.host_fed_epoch(KEY, network=network, batches=mlp.AGREEING_STEPS)
    state, step = batches[0][0], jax.jit(mlp.step_of(network))
    (theirs,) = peer.convert(jax.tree.map(np.asarray, state))
    losses, their_losses = [], []

    for _, images, labels in batches:
        state, loss = step(state, images, labels)
        theirs, their_loss = peer.function(theirs, *peer.convert(images, labels), network=network)
        losses.append(float(loss))
        their_losses.append(float(their_loss))

    assert their_losses == pytest.approx(losses, rel=1e-4)
    assert all(one != other for one, other in pairwise(losses))


def test_a_peer_needs_pytorch(monkeypatch):
    monkeypatch.setattr(util, "find_spec", lambda name: None)

    assert peers.needs_torch("cpu") == Skip("PyTorch is not installed: it comes with the extra 'torch'")


def test_pytorch_is_compared_on_the_cpu_only(monkeypatch):
    monkeypatch.setattr(util, "find_spec", lambda name: "found")

    assert peers.needs_torch("cpu") is None
    assert peers.needs_torch("gpu") is not None


def test_torch_compile_needs_a_compiler_too(monkeypatch):
    monkeypatch.setattr(util, "find_spec", lambda name: "found")
    monkeypatch.setattr(shutil, "which", lambda name: None)

    assert peers.needs_torch("cpu") is None
    assert peers.needs_torch_and_compiler("cpu") == Skip(
        "torch.compile needs a C++ compiler; found none of g++, clang++, c++"
    )
