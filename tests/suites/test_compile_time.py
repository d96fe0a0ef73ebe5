import jax
import numpy as np
import pytest

from jaxmeter.harness.probes.conditioning import relative_error
from jaxmeter.harness.record import Status
from jaxmeter.suites import compile_time
from tests.suites.outcomes import outcome_of

KEY = jax.random.key(0)


def norm(x, scale):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * scale


def layer(x, params, causal=True, heads=compile_time.HEADS, scale_of=np.sqrt):
    """The layer head by head, written again."""
    normal = norm(x, params["attention_norm"])
    parts = []
    for query, key, value in zip(
        *(np.split(normal @ params[name], heads, -1) for name in ("query", "key", "value")), strict=True
    ):
        scores = np.einsum("bqd,bkd->bqk", query, key) / scale_of(query.shape[-1])
        weights = np.exp(scores - scores.max(-1, keepdims=True)) * (np.tri(x.shape[1]) if causal else 1)
        parts.append(np.einsum("bqk,bkd->bqd", weights / weights.sum(-1, keepdims=True), value))
    x = x + np.concatenate(parts, -1) @ params["output"]
    normal = norm(x, params["mlp_norm"])
    gate = normal @ params["gate"]
    return x + (gate / (1 + np.exp(-gate)) * (normal @ params["up"])) @ params["down"]


def outcome_by(layer, layers=slice(None)):
    def forward(params, x):
        for one in params["apart"][layers]:
            x = layer(x, one)
        return x

    return outcome_of(compile_time.compile_depth, forward, depth=2, width=64)


def test_the_reference_is_what_the_layer_written_again_gives():
    assert outcome_by(layer).status is Status.OK


@pytest.mark.parametrize(
    ("changes", "layers"),
    [
        ({"causal": False}, slice(None)),
        ({"heads": 2}, slice(None)),
        ({"scale_of": lambda size: size}, slice(None)),
        ({}, slice(1)),
        ({}, slice(None, None, -1)),
    ],
    ids=["not causal", "other heads", "other scale", "a layer short", "other order"],
)
def test_a_decoder_that_differs_is_wrong(changes, layers):
    assert outcome_by(lambda x, params: layer(x, params, **changes), layers).status is Status.WRONG


def equations(function, depth):
    """Of its program, at the top level."""
    return len(jax.make_jaxpr(function)(*compile_time.apart_and_stacked(KEY, depth=depth, width=8)).eqns)


def test_a_loop_in_python_has_more_equations_with_every_layer_and_a_scan_as_many():
    first, second, third = (equations(compile_time.compile_depth.function, depth) for depth in (1, 2, 3))

    assert third - second == second - first == first
    assert equations(compile_time.scan, 1) == equations(compile_time.scan, 3) == 1


@pytest.mark.parametrize("shapes", [1, 2, 4, 8])
def test_layers_have_as_many_shapes_as_is_asked_for(shapes):
    layers, _ = compile_time.unlike_layers(KEY, depth=8, shapes=shapes)

    assert len(layers) == 8
    assert len({layer["down"].shape for layer in layers}) == len({layer["query"].shape for layer in layers}) == shapes


@pytest.mark.parametrize("shapes", [1, 2])
def test_a_jitted_layer_is_traced_once_for_each_shape(monkeypatch, shapes):
    traced = []

    def counted(x, params):
        traced.append(params["query"].shape)
        return compile_time.layer(x, params)

    monkeypatch.setattr(compile_time, "jitted_layer", jax.jit(counted))
    jax.jit(compile_time.layers_jitted).trace(*compile_time.unlike_layers(KEY, depth=4, shapes=shapes))

    assert len(traced) == shapes


def test_the_costs_count_the_parameters_that_there_are_and_the_products_of_a_layer():
    layers, x = compile_time.equal_layers(KEY, depth=2, width=16)
    cost = compile_time.forward_cost([16, 16])
    kernels = sum(leaf.size for leaf in jax.tree.leaves(layers) if leaf.ndim == 2)
    seen = int(np.tri(x.shape[1]).sum()) * len(x)

    assert cost.bytes == 4 * (sum(leaf.size for leaf in jax.tree.leaves(layers)) + 2 * x.size)
    assert cost.flops == 2 * kernels * x.size // 16 + 2 * 2 * 2 * seen * 16


def test_the_chain_has_an_equation_for_each_operation_and_the_loop_one():
    def equations(function, n):
        return len(jax.make_jaxpr(lambda x: function(x, n=n))(np.ones(4, "float32")).eqns)

    assert [equations(compile_time.operations.function, n) for n in (10, 100)] == [10, 100]
    assert equations(compile_time.loop, 10) == equations(compile_time.loop, 100)


def test_a_chain_that_is_one_operation_short_is_told_from_the_reference():
    x = compile_time.short_array(KEY)
    want = compile_time.sines_in_numpy(np.asarray(x, "float64"), n=10)

    error, _ = relative_error(np.asarray(compile_time.loop(x, n=9), "float64"), want)

    assert error > 1e-2
