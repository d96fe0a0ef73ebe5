from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmeter.harness.declare.declaration import call_with
from jaxmeter.harness.record import Status
from jaxmeter.suites import networks_in_numpy, transformer, transformer_networks
from jaxmeter.suites import transformer_in_numpy as reference
from jaxmeter.suites.transformer_networks import Decoder, Size
from tests.suites.outcomes import exact, outcome_of

KEY = jax.random.key(0)
TINY = Size(width=8, depth=2, heads=2, vocabulary=11, length=6, batch=3)


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    """A decoder of which NumPy takes a step in milliseconds, as width 8."""
    monkeypatch.setitem(transformer.SIZES, TINY.width, TINY)


def step_flops(graph, state, tokens, **options):
    """That XLA counts of a training step."""
    return flops(partial(transformer_networks.train_step, **options), graph, state, tokens)


def flops(function, *arguments):
    """That XLA counts of a function."""
    return jax.jit(function).lower(*arguments).cost_analysis()["flops"]


# The reference


def test_the_decoders_gradient_by_hand_is_the_slope_of_its_loss():
    _, (params, _), tokens = exact(*transformer.training(KEY, TINY))
    direction = jax.tree.map(np.random.default_rng(1).standard_normal, jax.tree.map(np.shape, params), is_leaf=is_shape)
    _, gradient = reference.decoder_gradient(params, tokens, heads=TINY.heads)

    def loss(step):
        moved = jax.tree.map(lambda param, change: param + step * change, params, direction)
        return reference.decoder_gradient(moved, tokens, heads=TINY.heads)[0]

    slope = sum(np.vdot(*pair) for pair in zip(jax.tree.leaves(gradient), jax.tree.leaves(direction), strict=True))
    assert (loss(1e-6) - loss(-1e-6)) / 2e-6 == pytest.approx(slope, rel=1e-6)


def is_shape(value):
    return isinstance(value, tuple)


def test_scores_of_turned_queries_and_keys_depend_on_their_distance_alone():
    query, key = np.random.default_rng(0).standard_normal((2, 1, 1, 1, 6))

    def score(*positions):
        return np.vdot(*(reference.rotated(x, np.array([at])) for x, at in zip((query, key), positions, strict=True)))

    assert score(7, 3) == pytest.approx(score(104, 100))
    assert score(7, 3) != pytest.approx(score(7, 4))


# What is caught


def step_in_numpy(monkeypatch, **changed):
    """The reference as an implementation, some functions changed."""

    def step(graph, state, tokens):
        with monkeypatch.context() as patched:
            for name, function in changed.items():
                patched.setattr(reference, name, function)
            return transformer.step_in_numpy(graph, state, tokens, width=TINY.width)[0]

    return step


def without_decay(params, memory, slopes, *, rate, decay):
    return networks_in_numpy.adam(params, memory, slopes, rate=rate)


def summed(logits, labels):
    loss, slope = networks_in_numpy.mean_cross_entropy(logits, labels)
    return len(labels) * loss, len(labels) * slope


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({}, Status.OK),
        ({"causal": lambda length: np.ones((length, length), bool)}, Status.WRONG),
        ({"causal": lambda length: np.tri(length, k=-1, dtype=bool) | np.eye(1, length, dtype=bool)}, Status.WRONG),
        ({"rotated": lambda x, positions, direction=1: x}, Status.WRONG),
        ({"adamw": without_decay}, Status.WRONG),
        ({"mean_cross_entropy": summed}, Status.WRONG),
    ],
    ids=["right", "no mask", "itself unseen", "no positions", "no weight decay", "summed loss"],
)
def test_a_wrong_training_step_is_told_from_a_right_one(monkeypatch, changed, status):
    tried = step_in_numpy(monkeypatch, **changed)

    found = outcome_of(transformer.transformer_step, tried, width=TINY.width, dtype="float32")

    assert found.status is status


def test_a_step_that_leaves_the_last_layer_as_it_was_is_wrong(monkeypatch):
    def frozen(graph, state, tokens):
        (params, memory), loss = step_in_numpy(monkeypatch)(graph, state, tokens)
        return ({**params, "blocks": {**params["blocks"], 1: state[0]["blocks"][1]}}, memory), loss

    found = outcome_of(transformer.transformer_step, frozen, width=TINY.width, dtype="float32")

    assert found.status is Status.WRONG


# Programs


@pytest.mark.slow
def test_stacked_layers_train_as_layers_that_are_apart():
    graphs, states, tokens = transformer.both_layouts(KEY, width=TINY.width, depth=TINY.depth)
    (expected, loss), _ = transformer.scanned_step_in_numpy(*exact(graphs, states["scan"], tokens), width=TINY.width)

    for layout, change in (
        ("scan", lambda state: state),
        ("unrolled", partial(transformer.of_state, transformer.stack)),
    ):
        after, found = jax.jit(transformer_networks.train_step)(graphs[layout], states[layout], tokens)

        assert float(found) == pytest.approx(loss)
        jax.tree.map(partial(np.testing.assert_allclose, atol=2e-5), change(after), expected)


@pytest.mark.parametrize("mask", ["causal", "local_window", "none"])
def test_the_options_of_attention_mean_the_mask_that_the_reference_has(mask, monkeypatch):
    monkeypatch.setattr(transformer, "WINDOW", 2)
    inputs = np.random.default_rng(0).standard_normal((3, 1, 7, 2, 4), np.float32)

    found, _ = transformer.attention_by("xla", mask)(*inputs)

    expected, _ = reference.attention(*inputs.astype(np.float64), transformer.seen_by(mask, 7))
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_local_window_is_the_position_itself_and_those_before_it(monkeypatch):
    monkeypatch.setattr(transformer, "WINDOW", 2)

    assert [list(np.flatnonzero(row)) for row in transformer.seen_by("local_window", 5)] == [
        [0], [0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4]
    ]  # fmt: skip


def test_the_less_a_policy_saves_the_more_is_computed_again():
    arguments = transformer.stacked_layers(KEY, width=TINY.width, depth=TINY.depth)
    count = {item.name: flops(item.function, *arguments) for item in transformer.transformer_remat.implementations}

    assert count["no_remat"] < count["dots_saveable"] * 1.01
    assert count["dots_saveable"] < count["dots_with_no_batch_dims_saveable"] < count["nothing_saveable"]


@pytest.mark.parametrize(
    ("backend", "width", "reason"),
    [
        ("cpu", 1_024, "cuDNN runs on NVIDIA GPUs only"),
        ("gpu", 128, "cuDNN's attention takes float16 and bfloat16 only"),
        ("gpu", 1_024, None),
    ],
)
def test_cudnn_takes_part_where_it_can(backend, width, reason):
    implementation, _ = transformer.transformer_attention.find_variant("cudnn:jit")

    skip = call_with(implementation.limit, {"mask": "causal", "width": width, "backend": backend})

    assert (skip and skip.reason) == reason


# Cost


@pytest.mark.parametrize("size", [TINY, *transformer.SIZES.values()], ids=lambda size: str(size.width))
def test_the_size_counts_the_parameters_that_there_are(size):
    _, shapes = transformer_networks.split(partial(Decoder, size))

    assert sum(leaf.size for leaf in jax.tree.leaves(shapes)) == size.params


def test_the_cost_of_a_step_is_what_xla_counts():
    size = transformer.SIZES[128]
    graph, shapes = transformer_networks.split(partial(Decoder, size))
    state = jax.eval_shape(lambda params: (params, transformer_networks.OPTIMISER.init(params)), shapes)
    tokens = jax.ShapeDtypeStruct((size.batch, size.length + 1), jnp.int32)

    # Its program computes the scores of all pairs, and masks half of them.
    every = transformer_networks.step_cost(size, seen=size.batch * size.length**2).flops

    assert step_flops(graph, state, tokens) == pytest.approx(every, rel=0.03)
    assert 0.9 * every < transformer_networks.step_cost(size).flops < every


def test_the_cost_of_a_block_is_what_xla_counts():
    arguments = transformer.block_and_slope(KEY, width=128)
    function = partial(transformer.transformer_attention.function, mask="none")

    assert flops(function, *arguments) == pytest.approx(transformer.block_cost(width=128, mask="none").flops, rel=0.05)
    costs = {mask: transformer.block_cost(width=128, mask=mask).flops for mask in ("none", "causal", "local_window")}
    assert costs["local_window"] < costs["causal"] < costs["none"]


def test_six_operations_a_parameter_and_token_are_most_of_a_step():
    """Kaplan et al., Scaling Laws for Neural Language Models, 2020, table 1: 6 N, embedding left out."""
    size = transformer.SIZES[1_024]
    kernels = size.params - size.vocabulary * size.width

    assert transformer_networks.step_cost(size).flops == pytest.approx(6 * kernels * size.tokens, rel=0.1)
