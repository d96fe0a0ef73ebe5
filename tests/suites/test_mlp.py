import shutil
from functools import partial
from importlib import util
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmeter import Skip
from jaxmeter.harness.probes.conditioning import relative_error
from jaxmeter.harness.probes.evaluation import TOLERANCE
from jaxmeter.harness.programs.arguments import widest
from jaxmeter.harness.programs.jax_events import watch_jax
from jaxmeter.harness.programs.modes import Carried
from jaxmeter.suites import mlp, mlp_in_torch, mlp_networks, models, peers
from tests.suites.outcomes import without_kernels

KEY = jax.random.key(0)


def relative_difference(got, want):
    """Of two pytrees, the largest."""
    pairs = zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True)
    return max(relative_error(widest(one), widest(other))[0] for one, other in pairs)


def in_float64(tree):
    return jax.tree.map(widest, tree)


# Training


def test_the_compile_cache_of_the_toy_epoch_has_one_program_after_the_first_batch_and_two_after_the_last():
    batches = mlp.toy_batches(KEY, n=mlp.TOY_POINTS)
    state, compiled = batches[0][0], []
    step = jax.jit(
        models.train_step(mlp_networks.TOY.model, mlp.ADAM, models.mean_cross_entropy)
    )  # not compiled by others

    with watch_jax() as seen:
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
    implementation, _ = mlp.mlp_step.find_variant("donated:jit")

    def step(*args):
        return implementation.function(*args, network="784-512-10")

    places = mlp.mlp_step.find_positions(implementation.donate)
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


@pytest.mark.parametrize("network", mlp_networks.NETWORKS)
@pytest.mark.parametrize(
    ("workload", "step", "make"),
    [
        (mlp.mlp_step, mlp.step_in_numpy, mlp.one_batch),
        (mlp.mlp_epoch_on_device, mlp.epoch_in_numpy, partial(mlp.epoch_on_device, batches=2)),
    ],
    ids=["step", "epoch"],
)
def test_training_that_leaves_kernels_unchanged_is_caught_in_every_format_of_products(workload, step, make, network):
    arguments = in_float64(make(KEY, network=network))
    wanted = workload.declaration.reference(*arguments, network=network)

    right, wrong = (
        workload.declaration.compare(tried(*arguments, network=network), inputs=arguments)
        for tried in (step, without_kernels(step))
    )

    assert relative_difference(right, wanted) == 0
    assert relative_difference(wrong, wanted) > TOLERANCE["bfloat16"]


# Epochs


def test_an_epoch_has_as_many_batches_as_the_images_of_a_part_fill():
    batches = {
        (network, part): mlp.number_of(mlp.EPOCH, part, network)
        for network in mlp_networks.NETWORKS
        for part in ("train", "test")
    }

    assert batches == {
        ("784-512-10", "train"): 1875,
        ("784-512-10", "test"): 312,
        ("784-512-512-10", "train"): 468,
        ("784-512-512-10", "test"): 78,
    }
    assert mlp.number_of(7, "train", "784-512-10") == 7


@pytest.mark.parametrize("workload", [mlp.mlp_epoch, mlp.mlp_epoch_on_device, mlp.mlp_evaluation])
def test_with_full_sizes_every_network_has_its_epoch_but_where_nothing_can_check_it(workload):
    first = workload.implementations[0]
    epochs = [case for case in workload.list_cases("full", "cpu") if case["batches"] == mlp.EPOCH]

    skipped = {case["network"] for case in epochs if first.find_skip(case, "cpu")}

    assert {case["network"] for case in epochs} == set(mlp_networks.NETWORKS)
    assert skipped == ({"784-512-512-10"} if workload is mlp.mlp_epoch_on_device else set())


def test_of_a_fed_epoch_the_first_steps_are_checked_and_of_a_short_one_the_state_too():
    def outcome(steps, right):
        losses, after, before = [[np.float32(1)]] * steps, *(({"params": np.full(2, n)}, ()) for n in (4, 1))
        wrong = [*losses[:right], *[[np.float32(2)]] * (steps - right)]
        return jax.tree.leaves(mlp.first_steps((wrong, [after]), inputs=[(before,)]))

    *_, state, length = outcome(7, right=7)
    assert (state.tolist(), length) == ([4, 4], 3)
    assert outcome(7, right=6)[6] == 2
    assert [float(leaf) for leaf in outcome(9, right=7)[:7]] == [1] * 7
    assert np.isnan(np.concatenate([np.ravel(leaf) for leaf in outcome(9, right=7)[7:]])).all()


@pytest.mark.parametrize("network", mlp_networks.NETWORKS)
def test_a_fed_epoch_whose_last_step_leaves_kernels_unchanged_is_caught_in_every_format_of_products(network):
    batches = in_float64(mlp.host_fed_epoch(KEY, network=network, batches=mlp.AGREEING_STEPS))
    step = partial(mlp.step_in_numpy, network=network)

    def epoch_of(*steps):
        """Result of an epoch with these steps."""
        following = iter(steps)

        def call(*item):
            return next(following)(*item)

        return Carried(call, mlp.mlp_epoch.carried, begin=lambda args: args).over(batches)

    wanted = epoch_of(*[partial(mlp.first_step_in_numpy, network=network)] * len(batches))
    right, wrong = (
        mlp.first_steps(epoch_of(*[step] * (len(batches) - 1), last), inputs=batches)
        for last in (step, without_kernels(step))
    )

    assert relative_difference(right, wanted) == 0
    assert relative_difference(wrong, wanted) > TOLERANCE["bfloat16"]


# Cost


def test_cost_counts_the_params_that_flax_makes():
    state = mlp.mnist_state(KEY, "784-512-512-10")

    assert mlp_networks.params_in((784, 512, 512, 10)) == sum(leaf.size for leaf in jax.tree.leaves(state[0]))


@pytest.mark.parametrize(
    ("workload", "params"),
    [
        (mlp.mlp_toy_epoch, {"n": 200}),
        (mlp.mlp_step, {"network": "784-512-10"}),
        (mlp.mlp_epoch, {"network": "784-512-10", "batches": 3}),
        (mlp.mlp_epoch_on_device, {"network": "784-512-10", "batches": 3}),
    ],
    ids=lambda one: getattr(one, "name", ""),
)
def test_the_items_of_a_call_are_the_examples_of_its_inputs(workload, params):
    made = workload.declaration.inputs(KEY, **params)
    labels = [item[-1] for item in made] if workload.declaration.stream else [made[-1]]

    assert workload.count_items(params) == sum(one.size for one in labels)


def test_an_update_is_counted_in_each_step_and_a_state_that_stays_in_a_cache_once():
    epochs = {"network": "784-512-10", "batches": 50}
    fed, on_device = mlp.batches_cost(**epochs), mlp.epoch_cost(**epochs)
    params = mlp_networks.params_in((784, 512, 10))

    assert fed.flops == on_device.flops == mlp_networks.step_flops((784, 512, 10), 50 * 32) + 50 * 2 * params
    assert fed.bytes - on_device.bytes == 49 * 2 * 4 * params


def test_a_step_does_three_products_a_layer_but_two_in_the_first():
    assert mlp_networks.step_flops((784, 512, 10), examples=32) == 2 * 32 * (2 * 784 * 512 + 3 * 512 * 10)


# PyTorch


@pytest.mark.torch
@pytest.mark.parametrize("network", mlp_networks.NETWORKS)
@pytest.mark.parametrize("name", ["torch:native", "torch.compile:native"])
def test_losses_of_7_steps_agree_with_those_of_pytorch(name, network):
    peer, _ = mlp.mlp_epoch.find_variant(name)
    assert peer.find_skip({}, "cpu") is None
    batches = mlp.host_fed_epoch(KEY, network=network, batches=mlp.AGREEING_STEPS)
    state, step = batches[0][0], jax.jit(mlp.step_of(network))
    theirs, *_ = peer.convert(*jax.tree.map(np.asarray, batches[0]))
    losses, their_losses = [], []

    for _, images, labels in batches:
        state, loss = step(state, images, labels)
        theirs, their_loss = peer.function(theirs, images, labels, network=network)
        losses.append(float(loss))
        their_losses.append(float(their_loss))

    assert their_losses == pytest.approx(losses, rel=1e-4)
    assert all(one != other for one, other in pairwise(losses))


@pytest.mark.torch
def test_pytorch_gets_its_batches_in_numpys_arrays_as_jax_does():
    arguments = jax.tree.map(np.asarray, mlp.host_fed_epoch(KEY, network="784-512-10", batches=1)[0])

    _, *batch = mlp_in_torch.arguments(*arguments)

    assert [type(array) for array in batch] == [np.ndarray, np.ndarray]


def test_a_peer_needs_pytorch_on_a_cpu_and_torch_compile_a_compiler_too(monkeypatch):
    monkeypatch.setattr(util, "find_spec", lambda name: None)
    assert peers.needs_torch("cpu") == Skip("PyTorch is not installed: install the extra 'torch'")

    monkeypatch.setattr(util, "find_spec", lambda name: "found")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert peers.needs_torch("cpu") is None
    assert peers.needs_torch("gpu") is not None
    assert peers.needs_torch_and_compiler("cpu") == Skip(
        "torch.compile needs a C++ compiler; found none of g++, clang++, c++"
    )
