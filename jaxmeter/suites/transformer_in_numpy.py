"""The transformer in NumPy: blocks with explicit gradients, and a training step.

Suites that train or decode with `transformer_networks` use it in float64 as their reference. The layers come from
`networks_in_numpy`. Parameters are dictionaries like those of nnx, with separate layers.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jaxmeter.suites.networks_in_numpy import Passed, adamw, dense, mean_cross_entropy, softmax, swish

RMS_EPSILON = 1e-6
"""Epsilon of flax.nnx's RMSNorm."""

ROTATION_BASE = 10_000.0
"""Base of the angles of rotary positions. Source: Su et al., RoFormer, 2021, section 3.2.2."""


def rms_norm(layer, x):
    """Normalise rows to mean square 1, then scale, (b, n) -> (b, n). Source: Zhang & Sennrich 2019, equation 4."""
    size = np.sqrt(np.square(x).mean(-1, keepdims=True) + RMS_EPSILON)
    normal = x / size

    def to_inputs(slope):
        slope = slope * layer["scale"]
        return (slope - normal * (slope * normal).mean(-1, keepdims=True)) / size

    return Passed(normal * layer["scale"], to_inputs, lambda slope: {"scale": (slope * normal).sum(0)})


def rotated(x, positions, direction=1):
    """Rotate pairs of entries by their positions, (b, l, h, d), (l,) -> (b, l, h, d); direction -1 rotates back."""
    half = x.shape[-1] // 2
    angles = positions[:, None, None] / ROTATION_BASE ** (np.arange(half) / half)
    turned = (x[..., :half] + 1j * x[..., half:]) * np.exp(direction * 1j * angles)
    return np.concatenate([turned.real, turned.imag], -1)


def attention(query, key, value, seen):
    """Compute attention of all heads, (b, q, h, d), (b, k, h, d) twice, (q, k) -> (b, q, h, d), gradient function.

    The (q, k) array `seen` states which keys a query sees.

    Source: Vaswani et al. 2017, equation 1; Dao et al., FlashAttention, 2022, appendix B.2, for the gradients.
    """
    query, key, value = (np.swapaxes(x, 1, 2) for x in (query, key, value))
    scale = query.shape[-1] ** -0.5
    shares = softmax(np.where(seen, scale * query @ np.swapaxes(key, 2, 3), -np.inf))

    def to_inputs(slope):
        slope = np.swapaxes(slope, 1, 2)
        by_shares = slope @ np.swapaxes(value, 2, 3)
        by_scores = scale * shares * (by_shares - (by_shares * shares).sum(-1, keepdims=True))
        slopes = by_scores @ key, np.swapaxes(by_scores, 2, 3) @ query, np.swapaxes(shares, 2, 3) @ slope
        return tuple(np.swapaxes(x, 1, 2) for x in slopes)

    return np.swapaxes(shares @ value, 1, 2), to_inputs


class PassedBlock(NamedTuple):
    """Result of a decoder block's forward pass.

    Args:
      backward: Function from the gradient at the output to (gradient by the inputs, gradient by the parameters).
      keys, values: Keys and values for later positions, (b, l, heads, d).
    """

    output: Any
    backward: Callable[[Any], tuple[Any, dict[str, Any]]]
    keys: Any
    values: Any


def block(layers, inputs, *, heads, seen, past=None):
    """Run a block like `transformer_networks.Block`, (b, l, width) -> (b, l, width).

    Args:
      seen: Which positions each position sees, (l, p + l).
      past: Keys and values of p earlier positions, (b, p, heads, d) each, without gradients.
    """
    *around, width = inputs.shape
    in_heads = (*around, heads, width // heads)
    positions = np.arange(around[-1]) + (0 if past is None else past[0].shape[1])
    passed = {}

    def forward(name, layer, x):
        passed[name] = layer(layers[name], x)
        return passed[name].output

    x = inputs.reshape(-1, width)
    qkv = np.split(forward("qkv", dense, forward("before_attention", rms_norm, x)), 3, -1)
    query, key, values = (part.reshape(in_heads) for part in qkv)
    keys = rotated(key, positions)
    past = past or (keys[:, :0], values[:, :0])
    every = (np.concatenate(both, 1) for both in zip(past, (keys, values), strict=True))
    mixed, to_heads = attention(rotated(query, positions), *every, seen)
    x = x + forward("output", dense, mixed.reshape(-1, width))
    gate, up = np.split(forward("gate_up", dense, forward("before_mlp", rms_norm, x)), 2, -1)
    active = swish(gate)
    x = x + forward("down", dense, active.output * up)

    def backward(slope):
        slopes = {}

        def back(name, slope):
            slopes[name] = slope
            return passed[name].to_inputs(slope)

        slope = slope.reshape(-1, width)
        inside = back("down", slope)
        by_gate_up = np.concatenate([active.to_inputs(inside * up), inside * active.output], -1)
        slope = slope + back("before_mlp", back("gate_up", by_gate_up))
        by_query, by_key, by_value = to_heads(back("output", slope).reshape(in_heads))
        by_heads = rotated(by_query, positions, -1), rotated(by_key, positions, -1), by_value
        by_qkv = np.concatenate([part.reshape(-1, width) for part in by_heads], -1)
        slope = slope + back("before_attention", back("qkv", by_qkv))
        return slope.reshape(inputs.shape), {name: layer.to_params(slopes[name]) for name, layer in passed.items()}

    return PassedBlock(x.reshape(inputs.shape), backward, keys, values)


def causal(length):
    """Return which positions each position sees: itself and all earlier positions, (l, l)."""
    return np.tri(length, dtype=bool)


def decoder(params, tokens, *, heads):
    """Run a decoder like `transformer_networks.Decoder` on tokens (b, l).

    Returns:
      The results of its blocks, norm and head; the output of the head is logits (b l, v).
    """
    x, blocks = params["embedding"]["embedding"][tokens], []
    for layers in params["blocks"].values():
        blocks.append(block(layers, x, heads=heads, seen=causal(tokens.shape[1])))
        x = blocks[-1].output
    norm = rms_norm(params["norm"], x.reshape(-1, x.shape[-1]))
    return blocks, norm, dense(params["head"], norm.output)


def decoder_gradient(params, tokens, *, heads):
    """Return (mean loss of the next token, its gradient by the parameters), tokens (b, l + 1)."""
    asked, answers = tokens[:, :-1], tokens[:, 1:].ravel()
    blocks, norm, head = decoder(params, asked, heads=heads)
    loss, slope = mean_cross_entropy(head.output, answers)
    gradient = {"head": head.to_params(slope)}
    slope = head.to_inputs(slope)
    gradient["norm"] = norm.to_params(slope)
    slope = norm.to_inputs(slope).reshape(blocks[0].output.shape)
    layers = {}
    for at, passed in reversed(list(enumerate(blocks))):
        slope, layers[at] = passed.backward(slope)
    embedding = np.zeros_like(params["embedding"]["embedding"])
    np.add.at(embedding, asked, slope)
    return loss, {**gradient, "blocks": layers, "embedding": {"embedding": embedding}}


def train_step(state, tokens, *, heads, rate, decay):
    """Compute a step like `transformer_networks.train_step`: (state, loss before the step)."""
    params, memory = state
    loss, slopes = decoder_gradient(params, tokens, heads=heads)
    return adamw(params, memory, slopes, rate=rate, decay=decay), loss
