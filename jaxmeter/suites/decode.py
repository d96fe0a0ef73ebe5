"""Decoding: a transformer's prompt in one pass, then one token at a time, by the cache of keys and values."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from jaxmeter import Answer, Cost, Items, State, itemsize, levels, workload
from jaxmeter.suites import transformer_in_numpy as reference
from jaxmeter.suites.transformer_networks import Decoder, Size, block_flops, drawn, pairs, split

SIZES = {
    512: Size(width=512, depth=4, heads=8, vocabulary=2_048, length=128),
    1_024: Size(width=1_024, depth=8, heads=16, vocabulary=16_384, length=512, dtype="bfloat16"),
}
"""Decoders by width: one with more parameters than fit a processor's caches, and one for a GPU. `length` is the number
of positions in a cache."""

WIDTHS = levels(quick=512, by_device={"gpu": 1_024, "tpu": 1_024})

SMALL = Size(width=128, depth=1, heads=4, vocabulary=512, length=128, batch=4)
"""The decoder that generates texts: small, because compile time is the subject."""

PROMPT = 16
"""Tokens of a text before the generated ones."""


def filled(size):
    """Return the filled positions of a cache before a token: three quarters, so that later positions must not count."""
    return 3 * size.length // 4


# Programs


def run(model, tokens, attends, first):
    """Return logits of the last position, (b, vocabulary), and what `attends` keep of each layer.

    Args:
      tokens: (b, l), at the positions from `first` on.
      attends: One function per layer, as `transformer_networks.Block` takes it.
    """
    x, kept = model.embedding(tokens), []
    for block, attend in zip(model.blocks, attends, strict=True):
        x, keys_and_values = block(x, attend, first)
        kept.append(keys_and_values)
    return model.head(model.norm(x[:, -1])), kept


def attend_to_prompt(query, key, value):
    """Return causal attention, and the unchanged keys and values."""
    return jax.nn.dot_product_attention(query, key, value, is_causal=True), (key, value)


def attend_in_place(cache, position):
    """Return attention to a cache of fixed size, into which it writes the token's key and value."""

    def attend(query, key, value):
        keys, values = (
            jax.lax.dynamic_update_slice(old, new, (0, position, 0, 0))
            for old, new in zip(cache, (key, value), strict=True)
        )
        seen = jnp.full(query.shape[0], position + 1, "int32")
        return jax.nn.dot_product_attention(query, keys, values, key_value_seq_lengths=seen), (keys, values)

    return attend


def attend_to_grown(cache):
    """Return attention to a cache that it extends by one position."""

    def attend(query, key, value):
        keys, values = (jnp.concatenate(both, 1) for both in zip(cache, (key, value), strict=True))
        return jax.nn.dot_product_attention(query, keys, values), (keys, values)

    return attend


def with_room(kept, length):
    """Return a cache with room for `length` positions, filled up with zeros."""
    return jax.tree.map(lambda part: jnp.pad(part, ((0, 0), (0, length - part.shape[1]), (0, 0), (0, 0))), kept)


def run_prompt(graph, params, tokens, length=None):
    """Return logits of the prompt's last position, and the cache, with room for `length` positions."""
    model = nnx.merge(graph, params)
    logits, kept = run(model, tokens, [attend_to_prompt] * len(model.blocks), 0)
    return logits, kept if length is None else with_room(kept, length)


def run_token(graph, params, cache, token, position):
    """Return logits after a token (b,) at a position, and the cache with this token."""
    attends = [attend_in_place(layer, position) for layer in cache]
    return run(nnx.merge(graph, params), token[:, None], attends, position)


def run_token_and_grow(graph, params, cache, token):
    """Return logits after a token, and a cache that is one position longer."""
    return run(nnx.merge(graph, params), token[:, None], list(map(attend_to_grown, cache)), cache[0][0].shape[1])


# Inputs


def weights(key, size):
    """Return a decoder's graph and parameters."""
    graph, shapes = split(partial(Decoder, size, dtype=size.dtype, param_dtype=size.dtype))
    return graph, drawn(key, shapes)


def random_tokens(key, size, batch, length):
    """Return random tokens (batch, length) int32."""
    return jax.random.randint(key, (batch, length), 0, size.vocabulary)


def prompt_length(size):
    """Return the number of tokens of a prompt: a quarter of a cache's positions."""
    return size.length // 4


def prompt(key, *, width, batch):
    """Return graph, parameters, and prompts (batch, length)."""
    size = SIZES[width]
    first, second = jax.random.split(key)
    return *weights(first, size), random_tokens(second, size, batch, prompt_length(size))


def cache_and_token(key, *, width, batch):
    """Return graph, parameters, keys and values of each layer, one token per text (batch,), and its position.

    The whole cache is standard normal, including the positions after this one.
    """
    size = SIZES[width]
    of_weights, of_cache, of_token = jax.random.split(key, 3)
    shape = (batch, size.length, size.heads, size.width // size.heads)
    keys = jax.random.split(of_cache, (size.depth, 2))
    cache = [tuple(jax.random.normal(subkey, shape, size.dtype) for subkey in layer) for layer in keys]
    return *weights(of_weights, size), cache, random_tokens(of_token, size, batch, 1)[:, 0], np.int32(filled(size))


def text(key, *, count):
    """Return graph, parameters, and tokens (4, 16 + count) of texts: a prompt of 16, then `count` more."""
    first, second = jax.random.split(key)
    return *weights(first, SMALL), random_tokens(second, SMALL, SMALL.batch, PROMPT + count)


# Reference


def prompt_in_numpy(graph, params, tokens, *, width):
    """Return logits of the last position, and keys and values of all positions."""
    blocks, _, head = reference.decoder(params, tokens, heads=SIZES[width].heads)
    logits = head.output.reshape(*tokens.shape, -1)
    return logits[:, -1], [(block.keys, block.values) for block in blocks]


def token_in_numpy(graph, params, cache, token, position, *, width):
    """Return logits and the cache with the token, by attention to the token and the positions before it."""
    x, after = params["embedding"]["embedding"][token[:, None]], []
    for layers, kept in zip(params["blocks"].values(), cache, strict=True):
        past = tuple(part[:, :position] for part in kept)
        passed = reference.block(layers, x, heads=SIZES[width].heads, seen=True, past=past)
        x = passed.output
        after.append(tuple(map(partial(written, position=position), kept, (passed.keys, passed.values))))
    norm = reference.rms_norm(params["norm"], x[:, 0])
    return reference.dense(params["head"], norm.output).output, after


def written(part, new, position):
    """Return a cache with one position overwritten."""
    return np.concatenate([part[:, :position], new, part[:, position + 1 :]], 1)


def text_in_numpy(graph, params, tokens):
    """Return logits after the prompt and each token, (1 + count, 4, vocabulary): all positions at once, no cache."""
    _, _, head = reference.decoder(params, tokens, heads=SMALL.heads)
    logits = head.output.reshape(*tokens.shape, -1)
    return np.swapaxes(logits[:, PROMPT - 1 :], 0, 1)


# Cost


def params_read(size):
    """Return the number of parameters that each token reads: all but the embedding, of which it reads one row."""
    return size.params - size.vocabulary * size.width


def cache_numbers(size, positions):
    """Return how many numbers the keys and values of one text have."""
    return 2 * size.depth * positions * size.width


def run_flops(size, batch, tokens, seen):
    """Return the FLOPs of the products of all blocks, and of the head for the last position.

    Args:
      seen: Number of (query, key) pairs of one text in which the query attends to the key.
    """
    return size.depth * block_flops(size, batch * tokens, batch * seen) + 2 * batch * size.width * size.vocabulary


def prompt_cost(*, width, batch):
    """Return the cost of a prompt: parameters are read once, and the cache is written."""
    size = SIZES[width]
    length = prompt_length(size)
    numbers = params_read(size) + batch * cache_numbers(size, length)
    return Cost(flops=run_flops(size, batch, length, pairs(length)), bytes=numbers * itemsize(size.dtype))


def token_cost(*, width, batch):
    """Return the cost of a token: parameters and filled cache are read once, one cache position is written."""
    size = SIZES[width]
    seen = filled(size) + 1
    numbers = params_read(size) + batch * cache_numbers(size, seen + 1)
    return Cost(flops=run_flops(size, batch, 1, seen), bytes=numbers * itemsize(size.dtype))


# Workloads


@workload(
    inputs=prompt,
    params={"width": WIDTHS, "batch": levels(default=1, full=8, by_device={"gpu": 8, "tpu": 8})},
    reference=prompt_in_numpy,
    cost=prompt_cost,
    items=Items("tokens", lambda *, width, batch: batch * prompt_length(SIZES[width])),
    modes=("jit",),
    implementation="at_once",
    compiles=1,
    level="default",
)
def prefill(graph, params, tokens):
    """Prompt in one pass, (graph, params, tokens (b, l)) -> (logits (b, vocabulary), [(keys, values)]).

    Source: Pope et al., Efficiently Scaling Transformer Inference, 2022, section 2, which distinguishes prefill and
    decoding.
    """
    return run_prompt(graph, params, tokens)


@prefill.implementation
def token_by_token(graph, params, tokens):
    """Prompt by `lax.scan` over positions, as in decoding: each token reads all parameters."""
    batch, length = tokens.shape
    model = nnx.merge(graph, params)
    heads, width = model.blocks[0].heads, model.head.in_features
    nothing = jnp.zeros((batch, length, heads, width // heads), model.head.kernel.dtype)

    def step(state, token_and_position):
        _, cache = state
        return run_token(graph, params, cache, *token_and_position), None

    begun = jnp.zeros((batch, model.head.out_features), nothing.dtype), [(nothing, nothing) for _ in model.blocks]
    return jax.lax.scan(step, begun, (tokens.T, jnp.arange(length)))[0]


@workload(
    inputs=cache_and_token,
    params={"width": WIDTHS, "batch": levels(quick=1, full=(2, 4, 8, 16, 32, 64))},
    reference=token_in_numpy,
    cost=token_cost,
    items=Items("tokens", lambda *, batch: batch),
    modes=("jit",),
    implementation="in_place",
    compiles=1,
    state=State(carry={"cache": 1}, donate=("cache",)),
    queued=16,
    answer=Answer(
        "How fast does a transformer decode?",
        "in_place:jit",
        metric="bandwidth_share",
        rank=2,
    ),
)
def decode_token(graph, params, cache, token, position):
    """One token of each text, (graph, params, cache, (b,), ()) -> (logits (b, vocabulary), cache), cache donated.

    Every call decodes the same position. Source: as `prefill`; Shazeer, Fast Transformer Decoding, 2019.
    """
    return run_token(graph, params, cache, token, position)


@decode_token.implementation
def copied(graph, params, cache, token, position):
    """One token of each text without donation: the whole cache is copied to write one position."""
    return run_token(graph, params, cache, token, position)


@partial(jax.jit, static_argnames="length")
def begin(graph, params, tokens, length=None):
    """Return logits and cache after the prompt of a text."""
    return run_prompt(graph, params, tokens[:, :PROMPT], length)


@partial(jax.jit, donate_argnames="cache")
def go_on(graph, params, cache, tokens, position):
    """Return logits and cache after a position of a text; the new cache reuses the old one's memory."""
    return run_token(graph, params, cache, jax.lax.dynamic_index_in_dim(tokens, position, 1, keepdims=False), position)


@jax.jit
def go_on_and_grow(graph, params, cache, tokens):
    """Return logits and a longer cache; the shape of the old cache specifies the position."""
    return run_token_and_grow(graph, params, cache, tokens[:, cache[0][0].shape[1]])


@workload(
    inputs=text,
    params={"count": levels(default=8, full=32)},
    reference=text_in_numpy,
    compare=np.stack,
    items=Items("tokens", lambda *, count: SMALL.batch * count),
    modes=("jit",),
    implementation="one_program",
    baseline="static_cache:mixed",
    compiles=1,
    level="full",
)
def generation(graph, params, tokens):
    """Texts in one program, (graph, params, tokens (4, 16 + n)) -> (1 + n) logits (4, 512), by `lax.scan`.

    The next token is given, as when a text is scored: where two logits are nearly equal, rounding would choose it.
    Source: as `prefill`; JAX's documentation, "Just-in-time compilation", on shapes that change.
    """
    logits, cache = run_prompt(graph, params, tokens[:, :PROMPT], SMALL.length)

    def step(cache, token_and_position):
        logits, cache = run_token(graph, params, cache, *token_and_position)
        return cache, logits

    positions = jnp.arange(PROMPT, tokens.shape[1])
    return jnp.concatenate([logits[None], jax.lax.scan(step, cache, (tokens[:, PROMPT:].T, positions))[1]])


@generation.implementation(modes=("mixed",), compiles=2)
def static_cache(graph, params, tokens):
    """One program for the prompt, and one for all tokens: the cache has a fixed size and is updated in place."""
    logits, cache = begin(graph, params, tokens, length=SMALL.length)
    every = [logits]
    for position in range(PROMPT, tokens.shape[1]):
        logits, cache = go_on(graph, params, cache, tokens, np.int32(position))
        every.append(logits)
    return every


@generation.implementation(modes=("mixed",), compiles=lambda *, count: 1 + count)
def growing_cache(graph, params, tokens):
    """A cache that grows with each token (`jnp.concatenate`): each length is a new shape, and so a new program."""
    logits, cache = begin(graph, params, tokens)
    every = [logits]
    for _ in range(PROMPT, tokens.shape[1]):
        logits, cache = go_on_and_grow(graph, params, cache, tokens)
        every.append(logits)
    return every
