"""Attention: time and memory of keeping a score for every pair of positions, and what a fused kernel saves."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxmeter import Answer, Caching, Cost, Peer, Skip, itemsize, levels, workload
from jaxmeter.suites.networks_in_numpy import softmax
from jaxmeter.suites.peers import needs_torch

HEADS = 8
HEAD = 64
"""Vaswani et al., Attention Is All You Need, 2017, table 3, the base model: h and d_k."""

PRODUCTS = 2
"""Matrix products of the forward pass: q k^T and p v."""

PRODUCTS_WITH_GRADIENT = 6
"""The two of the forward pass, and one each for the gradients of p, q, k and v. A kernel that keeps no scores
computes q k^T again."""

BLOCK = 128
"""Queries per block: enough for an efficient product, while their scores are a small part of all scores."""


def heads(key, *, length, dtype):
    """Return standard normal queries, keys and values, each of shape (1, length, 8, 64)."""
    return tuple(jax.random.normal(subkey, (1, length, HEADS, HEAD), dtype) for subkey in jax.random.split(key, 3))


def heads_and_cotangent(key, *, length, dtype):
    """Return queries, keys, values and the gradient at the output, each of shape (1, length, 8, 64)."""
    first, second = jax.random.split(key)
    cotangent = jax.random.normal(second, (1, length, HEADS, HEAD), dtype)
    return *heads(first, length=length, dtype=dtype), cotangent


def pairs(length, causal):
    """Return the number of (query, key) pairs in which the query attends to the key."""
    return length * (length + 1) // 2 if causal else length**2


def forward_cost(*, length, causal, dtype):
    """Return the cost: products of these pairs; q, k and v are read and the output is written once.

    Softmax is not counted.
    """
    return Cost(
        flops=PRODUCTS * 2 * HEADS * HEAD * pairs(length, causal),
        bytes=4 * length * HEADS * HEAD * itemsize(dtype),
    )


def gradient_cost(*, length, causal, dtype):
    """Return the cost with gradients: six products, four inputs and four outputs."""
    return Cost(
        flops=PRODUCTS_WITH_GRADIENT * 2 * HEADS * HEAD * pairs(length, causal),
        bytes=8 * length * HEADS * HEAD * itemsize(dtype),
    )


def weights_in_numpy(query, key, causal):
    """Return the softmax of one head's scaled scores, (length, d), (length, d) -> (length, length)."""
    scores = query @ key.T / np.sqrt(query.shape[-1])
    if causal:
        scores = np.where(np.tri(*scores.shape, dtype=bool), scores, -np.inf)
    return softmax(scores)


def attention_in_numpy(query, key, value, *, causal):
    """Return attention by its definition, head by head: the scores of all heads at once exceed the memory."""
    output = np.empty_like(query)
    for batch, head in np.ndindex(query.shape[0], query.shape[2]):
        place = (batch, slice(None), head)
        output[place] = weights_in_numpy(query[place], key[place], causal) @ value[place]
    return output


def gradient_in_numpy(query, key, value, cotangent, *, causal):
    """Return the output and the gradients of q, k and v, derived by hand.

    Source: Dao et al., FlashAttention, 2022, appendix B.2: dS = P * (dP - rowsum(dO * O)).
    """
    results = tuple(np.empty_like(query) for _ in range(4))
    scale = 1 / np.sqrt(query.shape[-1])
    for batch, head in np.ndindex(query.shape[0], query.shape[2]):
        place = (batch, slice(None), head)
        weights = weights_in_numpy(query[place], key[place], causal)
        output = weights @ value[place]
        row_sums = (cotangent[place] * output).sum(axis=-1, keepdims=True)
        scores_gradient = weights * (cotangent[place] @ value[place].T - row_sums) * scale
        gradients = scores_gradient @ key[place], scores_gradient.T @ query[place], weights.T @ cotangent[place]
        for result, part in zip(results, (output, *gradients), strict=True):
            result[place] = part
    return results


def needs_cudnn(backend, dtype):
    """Return a Skip where cuDNN's kernel cannot run: it needs an NVIDIA GPU and 16-bit numbers."""
    if backend != "gpu":
        return Skip("cuDNN runs on NVIDIA GPUs only")
    if dtype not in ("bfloat16", "float16"):
        return Skip("cuDNN's attention takes float16 and bfloat16 only")
    return None


def torch_takes(backend, dtype):
    """Return a Skip where PyTorch cannot run, or cannot convert NumPy arrays of this dtype."""
    if (skip := needs_torch(backend)) is not None:
        return skip
    return Skip("PyTorch cannot convert NumPy arrays of bfloat16") if dtype == "bfloat16" else None


def torch_heads(*arrays):
    """Return the arrays as tensors in PyTorch's layout, (batch, heads, length, d)."""
    import torch

    return tuple(torch.from_numpy(np.array(array)).transpose(1, 2) for array in arrays)


def torch_attention(query, key, value, *, causal):
    """`torch.nn.functional.scaled_dot_product_attention`, (1, heads, length, d) -> (1, length, heads, d)."""
    from torch.nn.functional import scaled_dot_product_attention

    return scaled_dot_product_attention(query, key, value, is_causal=causal).transpose(1, 2)


def torch_gradient(query, key, value, cotangent, *, causal):
    """PyTorch's `scaled_dot_product_attention` with its gradients by `torch.autograd.grad`."""
    import torch

    inputs = tuple(array.detach().requires_grad_() for array in (query, key, value))
    output = torch.nn.functional.scaled_dot_product_attention(*inputs, is_causal=causal)
    gradients = torch.autograd.grad(output, inputs, cotangent)
    return tuple(array.detach().transpose(1, 2) for array in (output, *gradients))


@workload(
    inputs=heads,
    params={
        "length": levels(quick=128, default=1024, full=(512, 2048, 4096), by_device={"gpu": (4096, 8192)}),
        "causal": levels(quick=True, full=False),
        "dtype": levels(quick="float32", by_device={"gpu": "bfloat16", "tpu": "bfloat16"}),
    },
    reference=attention_in_numpy,
    cost=forward_cost,
    peers={"torch": Peer(torch_attention, limit=torch_takes, convert=torch_heads)},
    modes=("jit",),
    implementation="naive",
    compiles=1,
    caching=Caching(
        new_shape=lambda *, length: {"length": length + 1}, new_static=lambda *, causal: {"causal": not causal}
    ),
    answer=Answer(
        "Attention: how much memory?",
        "by_blocks:jit",
        against="naive:jit",
        metric="temp_bytes",
        at={"length": 1024},
        rank=5,
    ),
)
def attention(query, key, value, *, causal):
    """Scaled dot product attention by its formula, (1, length, 8, 64) -> (1, length, 8, 64).

    Source: Vaswani et al., Attention Is All You Need, 2017, equation 1.
    """
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / HEAD**0.5
    if causal:
        scores = jnp.where(jnp.tri(*scores.shape[-2:], dtype=bool), scores, -jnp.inf)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), value)


@attention.implementation
def xla(query, key, value, *, causal):
    """`jax.nn.dot_product_attention` as XLA compiles it: the same scores, softmax in float32."""
    return jax.nn.dot_product_attention(query, key, value, is_causal=causal, implementation="xla")


@attention.implementation
def by_blocks(query, key, value, *, causal):
    """Attention of 128 queries at a time in a loop that keeps no scores: a gradient computes them again.

    Source: Rabe & Staats, Self-attention Does Not Need O(n^2) Memory, 2021; here all keys are in one block.
    """

    @jax.checkpoint
    def attend(place_and_query):
        place, query = place_and_query
        scores = jnp.einsum("bhd,bkhd->bhk", query, key) / HEAD**0.5
        if causal:
            scores = jnp.where(jnp.arange(key.shape[1]) <= place, scores, -jnp.inf)
        return jnp.einsum("bhk,bkhd->bhd", jax.nn.softmax(scores), value)

    places = jnp.arange(query.shape[1])
    return jnp.moveaxis(jax.lax.map(attend, (places, jnp.moveaxis(query, 1, 0)), batch_size=BLOCK), 0, 1)


@attention.implementation(limit=needs_cudnn)
def cudnn(query, key, value, *, causal):
    """`jax.nn.dot_product_attention` by cuDNN's fused kernel, which keeps no scores in memory."""
    return jax.nn.dot_product_attention(query, key, value, is_causal=causal, implementation="cudnn")


def with_gradient(function, query, key, value, cotangent, causal):
    """Return a function's output and its gradients of query, key and value."""
    output, pull_back = jax.vjp(partial(function, causal=causal), query, key, value)
    return output, *pull_back(cotangent)


@workload(
    inputs=heads_and_cotangent,
    params={
        "length": levels(default=512, full=(128, 1024, 2048, 4096), by_device={"gpu": (4096, 8192)}),
        "causal": levels(quick=True, full=False),
        "dtype": levels(quick="float32", by_device={"gpu": "bfloat16", "tpu": "bfloat16"}),
    },
    reference=gradient_in_numpy,
    cost=gradient_cost,
    peers={"torch": Peer(torch_gradient, limit=torch_takes, convert=torch_heads)},
    modes=("jit",),
    implementation="naive",
    compiles=1,
    caching=Caching(
        new_shape=lambda *, length: {"length": length + 1}, new_static=lambda *, causal: {"causal": not causal}
    ),
    level="default",
)
def attention_gradient(query, key, value, cotangent, *, causal):
    """Attention and its gradients of q, k, v, (1, length, 8, 64) and a cotangent -> four of (1, length, 8, 64).

    Source: Vaswani et al., Attention Is All You Need, 2017, equation 1.
    """
    return with_gradient(attention, query, key, value, cotangent, causal)


@attention_gradient.implementation(name="xla")
def xla_gradient(query, key, value, cotangent, *, causal):
    """`jax.nn.dot_product_attention` as XLA compiles it, differentiated by JAX."""
    return with_gradient(xla, query, key, value, cotangent, causal)


@attention_gradient.implementation(name="by_blocks")
def gradient_by_blocks(query, key, value, cotangent, *, causal):
    """Attention of 128 queries at a time, forward and backward."""
    return with_gradient(by_blocks, query, key, value, cotangent, causal)


@attention_gradient.implementation(name="cudnn", limit=needs_cudnn)
def cudnn_gradient(query, key, value, cotangent, *, causal):
    """`jax.nn.dot_product_attention` by cuDNN's fused kernels, forward and backward."""
    return with_gradient(cudnn, query, key, value, cotangent, causal)
