"""Transformer in flax.nnx for suites that train and decode: sizes, parameters, training step and cost."""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from jaxmeter import Cost, itemsize
from jaxmeter.suites import models
from jaxmeter.suites.networks_in_numpy import ADAM
from jaxmeter.suites.transformer_in_numpy import ROTATION_BASE


@dataclass(frozen=True)
class Size:
    """Size of a decoder and of its training batch.

    Args:
      length: Length of a sequence, in tokens.
      dtype: Format of parameters and cache during decoding.
    """

    width: int
    depth: int
    heads: int
    vocabulary: int
    length: int
    batch: int = 1
    dtype: str = "float32"

    @property
    def hidden(self):
        """Width of the gated MLP: its three products cost about as much as the usual two with 4 times the width."""
        return 3 * self.width

    @property
    def tokens(self):
        """Tokens of a batch."""
        return self.batch * self.length

    @property
    def params_in_block(self):
        """Parameters of a block: four square kernels of attention, three kernels of the MLP, and two scales."""
        return 4 * self.width**2 + 3 * self.width * self.hidden + 2 * self.width

    @property
    def params(self):
        """Trained parameters: blocks, embedding, head, and the last scale."""
        return self.depth * self.params_in_block + 2 * self.vocabulary * self.width + self.width


RATE = 1e-3
WEIGHT_DECAY = 0.1
"""Brown et al., Language Models are Few-Shot Learners, 2020, appendix B."""

OPTIMISER = optax.adamw(RATE, weight_decay=WEIGHT_DECAY)

SECOND_MOMENT = 1e-7
"""Initial value of Adam's second moment, see `models.CNN_SECOND_MOMENT`. After bias correction it is 1e-4, the square
of the larger gradients. So the first update is as large as later updates, and more than a sign."""


# Networks


def rotate(x, positions):
    """Apply rotary position embedding to queries or keys, (b, l, h, d), (l,) -> (b, l, h, d).

    Source: Su et al., RoFormer, 2021, equation 34; pairs of entries are half of d apart, as in GPT-NeoX.
    """
    half = x.shape[-1] // 2
    angles = positions[:, None, None] * ROTATION_BASE ** (-jnp.arange(half) / half)
    cosine, sine = jnp.cos(angles), jnp.sin(angles)
    first, second = x[..., :half], x[..., half:]
    return jnp.concatenate([first * cosine - second * sine, second * cosine + first * sine], -1).astype(x.dtype)


def attend_causally(query, key, value):
    """Let each position attend to itself and all earlier positions: (output, None, because nothing is kept)."""
    return jax.nn.dot_product_attention(query, key, value, is_causal=True), None


class Block(nnx.Module):
    """A decoder block, (b, l, width) -> (b, l, width): attention, then a gated MLP, each added to its input.

    Source: Touvron et al., LLaMA, 2023, section 2.2.
    """

    def __init__(self, size, *, rngs, dtype, param_dtype):
        dense = partial(nnx.Linear, use_bias=False, dtype=dtype, param_dtype=param_dtype, rngs=rngs)
        norm = partial(nnx.RMSNorm, size.width, dtype=dtype, param_dtype=param_dtype, rngs=rngs)
        self.heads = size.heads
        self.before_attention, self.before_mlp = norm(), norm()
        self.qkv, self.output = dense(size.width, 3 * size.width), dense(size.width, size.width)
        self.gate_up, self.down = dense(size.width, 2 * size.hidden), dense(size.hidden, size.width)

    def __call__(self, x, attend=attend_causally, first=0):
        """Return (output of the block, what `attend` keeps).

        Args:
          attend: (query, key, value), each (b, l, heads, d) -> (attention output, what it keeps).
          first: Position of the first token.
        """
        qkv = jnp.split(self.qkv(self.before_attention(x)), 3, -1)
        query, key, value = (part.reshape(*x.shape[:2], self.heads, -1) for part in qkv)
        positions = first + jnp.arange(x.shape[1])
        mixed, kept = attend(rotate(query, positions), rotate(key, positions), value)
        x = x + self.output(mixed.reshape(x.shape))
        gate, up = jnp.split(self.gate_up(self.before_mlp(x)), 2, -1)
        return x + self.down(nnx.silu(gate) * up), kept


def apply_block(block, x):
    """Return only the output of a block."""
    return block(x)[0]


class Decoder(nnx.Module):
    """Embedding, blocks, norm and head: tokens (b, l) -> logits (b, l, vocabulary).

    Args:
      scanned: Whether `blocks` is one block with stacked parameters, for a `lax.scan` over the layers.
      dtype: Format of the computation.
    """

    def __init__(self, size, *, rngs, scanned=False, dtype="float32", param_dtype="float32"):
        formats = {"dtype": jnp.dtype(dtype), "param_dtype": jnp.dtype(param_dtype), "rngs": rngs}
        self.scanned = scanned
        self.embedding = nnx.Embed(size.vocabulary, size.width, **formats)
        self.blocks = Block(size, **formats) if scanned else nnx.List(Block(size, **formats) for _ in range(size.depth))
        self.norm = nnx.RMSNorm(size.width, **formats)
        self.head = nnx.Linear(size.width, size.vocabulary, use_bias=False, **formats)

    def __call__(self, tokens, apply=apply_block):
        """Return the logits of a batch.

        Args:
          apply: (block, x) -> x, for example a function that recomputes a block in the backward pass.
        """
        x = self.embedding(tokens)
        if self.scanned:
            x = nnx.scan(apply, in_axes=(0, nnx.Carry), out_axes=nnx.Carry)(self.blocks, x)
        else:
            for block in self.blocks:
                x = apply(block, x)
        return self.head(self.norm(x))


def split(make):
    """Return the graph of a module, and the shapes of its parameters as dictionaries, without computing anything.

    Args:
      make: Function that returns a module and takes options, including `rngs`.
    """
    graph, shapes = nnx.split(nnx.eval_shape(lambda: make(rngs=nnx.Rngs(0))))
    return graph, nnx.to_pure_dict(shapes)


def drawn(key, shapes):
    """Draw parameters as NumPy arrays like `models.initial_state`: kernels of variance 1 / fan-in."""
    generator = np.random.default_rng(np.asarray(jax.random.key_data(key)))

    def draw(path, leaf):
        kind = path[-1].key
        if kind == "scale":
            return np.ones(leaf.shape, leaf.dtype)
        deviation = leaf.shape[0] ** -0.5 if kind == "kernel" else 1.0
        return (deviation * generator.standard_normal(leaf.shape, np.float32)).astype(leaf.dtype)

    return jax.tree_util.tree_map_with_path(draw, shapes)


def stack(params):
    """Convert the parameters of a decoder with separate layers to stacked layers."""
    return {**params, "blocks": jax.tree.map(lambda *layers: np.stack(layers), *params["blocks"].values())}


def unstack(params):
    """Convert the parameters of a decoder with stacked layers to separate layers."""
    leaves, form = jax.tree.flatten(params["blocks"])
    return {**params, "blocks": {at: form.unflatten(layer) for at, layer in enumerate(zip(*leaves, strict=True))}}


# Training


def initial_state(params):
    """Return the state that a training step carries: (parameters, state of AdamW)."""
    adam, *rest = jax.eval_shape(OPTIMISER.init, params)
    zeros = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), adam)
    nu = jax.tree.map(lambda leaf: np.full(leaf.shape, SECOND_MOMENT, leaf.dtype), adam.nu)
    return params, (zeros._replace(nu=nu), *rest)


def gradient(graph, params, tokens, apply=apply_block):
    """Return (mean loss of the next token, its gradient by the parameters), tokens (b, l + 1)."""

    def loss_of(params):
        logits = nnx.merge(graph, params)(tokens[:, :-1], apply)
        return models.mean_cross_entropy(logits, tokens[:, 1:])

    return jax.value_and_grad(loss_of)(params)


def update(state, slopes):
    """Return the state after a step of AdamW."""
    params, memory = state
    changes, memory = OPTIMISER.update(slopes, memory, params)
    return optax.apply_updates(params, changes), memory


def train_step(graph, state, tokens, apply=apply_block):
    """Run a training step on tokens (b, l + 1): (state, loss before the step)."""
    loss, slopes = gradient(graph, state[0], tokens, apply)
    return update(state, slopes), loss


def of_state(change, state):
    """Apply a change of the layout of parameters, such as `stack`, to a whole state."""
    params, (adam, *rest) = state
    return change(params), (adam._replace(mu=change(adam.mu), nu=change(adam.nu)), *rest)


# Cost


def pairs(length):
    """Return the number of (query, key) pairs of a causal mask."""
    return length * (length + 1) // 2


def block_flops(size, tokens, seen):
    """Return the FLOPs of a block's forward pass: each kernel for each token, and q k^T and p v for each pair.

    Args:
      seen: Number of (query, key) pairs that the mask admits, over all sequences.
    """
    kernels = size.params_in_block - 2 * size.width
    return 2 * tokens * kernels + 2 * 2 * seen * size.width


def step_cost(size, seen=None):
    """Return the cost of a training step: forward products, twice as many backward, and AdamW.

    Bytes: parameters and moments are read and written.

    Args:
      seen: Number of (query, key) pairs that the mask admits, over all sequences; by default of a causal mask.
    """
    seen = size.batch * pairs(size.length) if seen is None else seen
    forward = size.depth * block_flops(size, size.tokens, seen) + 2 * size.tokens * size.width * size.vocabulary
    decay = 2  # a product and a sum
    return Cost(
        flops=3 * forward + (ADAM.operations + decay) * size.params,
        bytes=2 * ADAM.numbers * size.params * itemsize("float32"),
    )
