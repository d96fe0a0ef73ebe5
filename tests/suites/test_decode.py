from dataclasses import replace
from functools import partial

import jax
import numpy as np
import pytest

from jaxmeter.harness.programs.jax_events import watch_jax
from jaxmeter.harness.record import Status
from jaxmeter.suites import decode, transformer_networks
from jaxmeter.suites.transformer_networks import Decoder, Size
from tests.suites.outcomes import exact, outcome_of

KEY = jax.random.key(0)
TINY = Size(width=8, depth=2, heads=2, vocabulary=11, length=8, batch=2)
TRIED = {"width": TINY.width, "batch": 3}


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    """A decoder that NumPy runs in milliseconds, as width 8 and as that of texts."""
    monkeypatch.setitem(decode.SIZES, TINY.width, TINY)
    monkeypatch.setattr(decode, "SMALL", replace(TINY, depth=1))
    monkeypatch.setattr(decode, "PROMPT", 3)


# The reference


def test_a_token_after_a_cache_has_the_logits_of_the_whole_text():
    graph, params, _ = exact(*decode.prompt(KEY, **TRIED))
    tokens = np.random.default_rng(0).integers(0, TINY.vocabulary, (3, 6))
    before = 5
    _, kept = decode.prompt_in_numpy(graph, params, tokens[:, :before], width=TINY.width)
    behind = np.full((3, TINY.length - before, TINY.heads, 4), 1e3)
    cache = [tuple(np.concatenate([part, behind], 1) for part in layer) for layer in kept]

    logits, after = decode.token_in_numpy(graph, params, cache, tokens[:, before], before, width=TINY.width)

    expected, whole = decode.prompt_in_numpy(graph, params, tokens[:, : before + 1], width=TINY.width)
    np.testing.assert_allclose(logits, expected)
    for layer, of_all in zip(after, whole, strict=True):
        for part, all_of_it in zip(layer, of_all, strict=True):
            np.testing.assert_allclose(part[:, : before + 1], all_of_it)
            np.testing.assert_array_equal(part[:, before + 1 :], behind[:, 1:])


def test_logits_of_a_text_are_those_of_its_beginnings():
    graph, params, tokens = exact(*decode.text(KEY, count=2))

    logits = decode.text_in_numpy(graph, params, tokens)

    for at, length in enumerate((3, 4, 5)):
        expected, _ = decode.prompt_in_numpy(graph, params, tokens[:, :length], width=TINY.width)
        np.testing.assert_allclose(logits[at], expected)


# What is caught


def token_in_numpy(graph, params, cache, token, position):
    return decode.token_in_numpy(graph, params, cache, token, int(position), width=TINY.width)


def unwritten(graph, params, cache, token, position):
    return token_in_numpy(graph, params, cache, token, position)[0], cache


def a_place_too_late(graph, params, cache, token, position):
    return token_in_numpy(graph, params, cache, token, position + 1)


def without_the_past(graph, params, cache, token, position):
    emptied = jax.tree.map(lambda part: part * (np.arange(TINY.length) >= position)[:, None, None], cache)
    logits, _ = token_in_numpy(graph, params, emptied, token, position)
    return logits, token_in_numpy(graph, params, cache, token, position)[1]


@pytest.mark.parametrize(
    ("tried", "status"),
    [
        (token_in_numpy, Status.OK),
        (unwritten, Status.WRONG),
        (a_place_too_late, Status.WRONG),
        (without_the_past, Status.WRONG),
    ],
)
def test_a_wrong_token_is_told_from_a_right_one(tried, status):
    assert outcome_of(decode.decode_token, tried, **TRIED).status is status


# Programs


def test_tokens_one_by_one_fill_the_cache_of_the_prompt_at_once():
    arguments = decode.prompt(KEY, **TRIED)
    expected = decode.prompt_in_numpy(*exact(*arguments), width=TINY.width)

    for item in decode.prefill.implementations:
        jax.tree.map(partial(np.testing.assert_allclose, atol=2e-5), jax.jit(item.function)(*arguments), expected)


def compiled(function, *arguments):
    """The result, and how many programs a first and a second call compile."""
    counts = []
    jax.clear_caches()
    for _ in range(2):
        with watch_jax() as seen:
            result = jax.block_until_ready(function(*arguments))
        counts.append(seen.compiled)
    return np.stack(result), counts


def test_a_growing_cache_compiles_for_each_token_and_a_static_one_twice():
    arguments = jax.block_until_ready(jax.tree.map(jax.numpy.asarray, decode.text(KEY, count=2)))
    expected = decode.text_in_numpy(*exact(*arguments))
    budgets = {item.name: item.compiles for item in decode.generation.implementations}

    for name, function, programs in (
        ("static_cache", decode.static_cache, 2),
        ("growing_cache", decode.growing_cache, 3),
    ):
        logits, counts = compiled(function, *arguments)

        np.testing.assert_allclose(logits, expected, atol=2e-5)
        assert counts == [programs, 0]
        assert programs == (budgets[name] if isinstance(budgets[name], int) else budgets[name](count=2))


def test_a_cache_of_fixed_size_has_room_for_every_text():
    counts = decode.generation.params["count"]

    assert max(*counts.default, *counts.full) + 16 <= 128


# Cost


def test_a_token_reads_all_parameters_but_the_embedding_and_what_is_filled_of_the_cache():
    size = decode.SIZES[512]
    _, shapes = transformer_networks.split(partial(Decoder, size))
    read = sum(leaf.size for leaf in jax.tree.leaves({**shapes, "embedding": ()}))

    found = decode.token_cost(width=512, batch=7)

    # 96 of 128 positions are filled, the token's own is read too, and written.
    assert found.bytes == 4 * (read + 7 * 98 * 2 * 4 * 512)


@pytest.mark.parametrize("batch", [1, 8])
def test_the_flops_of_a_token_and_of_a_prompt_are_what_xla_counts(batch):
    size = decode.SIZES[512]
    graph, params = transformer_networks.split(partial(Decoder, size))

    def count(function, *arguments):
        return jax.jit(function).lower(graph, params, *arguments).cost_analysis()["flops"]

    layer = jax.ShapeDtypeStruct((batch, size.length, size.heads, size.width // size.heads), "float32")
    token, position = jax.ShapeDtypeStruct((batch,), "int32"), jax.ShapeDtypeStruct((), "int32")

    # Its program attends to all of the cache, and masks what is not filled.
    every = decode.run_flops(size, batch, 1, size.length)
    prompt = decode.run_flops(size, batch, size.length, size.length**2)

    assert count(decode.run_token, [(layer, layer)] * size.depth, token, position) == pytest.approx(every, rel=0.03)
    assert 0.9 * every < decode.token_cost(width=512, batch=batch).flops < every
    tokens = jax.ShapeDtypeStruct((batch, size.length), "int32")
    assert count(decode.run_prompt, tokens) == pytest.approx(prompt, rel=0.03)
