"""Training steps: optimisers, mixed precision, normalisation, and a transformer by flax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import linen, nnx
from optax import contrib

from benchmarks.correctness.program import Program, normal

WIDTHS = (16, 32, 32, 4)
BATCH = 64


def make_network(key: Any) -> tuple[Any, ...]:
    """Weights and biases of a small network, and a batch."""
    keys = jax.random.split(key, len(WIDTHS) + 1)
    sides = zip(keys, WIDTHS[:-1], WIDTHS[1:], strict=False)
    layers = [
        {"w": jax.random.normal(each, (rows, columns)) / rows**0.5, "b": jnp.zeros(columns)}
        for each, rows, columns in sides
    ]
    return layers, (jax.random.normal(keys[-2], (BATCH, WIDTHS[0])), jax.random.normal(keys[-1], (BATCH, WIDTHS[-1])))


def predict(layers: Any, x: Any) -> Any:
    """The network's output."""
    for layer in layers[:-1]:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return x @ layers[-1]["w"] + layers[-1]["b"]


def find_loss(layers: Any, batch: Any) -> Any:
    """The mean square error."""
    x, y = batch
    return jnp.mean((predict(layers, x) - y) ** 2)


def make_step(optimiser: Any) -> Callable[..., Any]:
    """Three steps from a fresh state: the weights and the losses."""

    def step(layers: Any, batch: Any) -> Any:
        def once(state: Any, _: Any) -> Any:
            layers, moments = state
            loss, gradients = jax.value_and_grad(find_loss)(layers, batch)
            updates, moments = optimiser.update(gradients, moments, layers)
            return (optax.apply_updates(layers, updates), moments), loss

        (layers, _), losses = jax.lax.scan(once, (layers, optimiser.init(layers)), None, length=3)
        return layers, losses

    return step


def step_in_bfloat16(layers: Any, batch: Any) -> Any:
    """Parameters in float32, computing in bfloat16, by gradient descent."""

    def loss(layers: Any) -> Any:
        narrow = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), (layers, batch))
        return find_loss(*narrow).astype(jnp.float32)

    return jax.tree.map(lambda leaf, gradient: leaf - 0.1 * gradient, layers, jax.grad(loss)(layers))


class Block(nnx.Module):
    """One block of a transformer."""

    def __init__(self, width: int, *, rngs: nnx.Rngs) -> None:
        """Makes its parameters."""
        self.attention = nnx.MultiHeadAttention(
            num_heads=2, in_features=width, qkv_features=width, decode=False, rngs=rngs
        )
        self.norms = nnx.List([nnx.LayerNorm(width, rngs=rngs) for _ in range(2)])
        self.wide = nnx.Linear(width, 2 * width, rngs=rngs)
        self.narrow = nnx.Linear(2 * width, width, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        """The block's output, (batch, length, width)."""
        x = x + self.attention(self.norms[0](x))
        return x + self.narrow(jax.nn.gelu(self.wide(self.norms[1](x))))


class Transformer(nnx.Module):
    """Embedding, a block, logits."""

    def __init__(self, *, rngs: nnx.Rngs) -> None:
        """Makes its parameters."""
        self.embed = nnx.Embed(50, 32, rngs=rngs)
        self.blocks = nnx.List([Block(32, rngs=rngs) for _ in range(1)])
        self.head = nnx.Linear(32, 50, rngs=rngs)

    def __call__(self, tokens: Any) -> Any:
        """Logits, (batch, length, 50)."""
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


GRAPH, _ = nnx.split(nnx.eval_shape(lambda: Transformer(rngs=nnx.Rngs(0))))
ADAMW = optax.adamw(1e-3)


def make_transformer(key: Any) -> tuple[Any, ...]:
    """Parameters, the optimiser's state, tokens."""
    _, state = nnx.split(Transformer(rngs=nnx.Rngs(0)))
    parameters = nnx.to_pure_dict(state)
    return parameters, ADAMW.init(parameters), jax.random.randint(key, (4, 17), 0, 50)


def step_transformer(parameters: Any, state: Any, tokens: Any) -> Any:
    """One step by AdamW."""

    def loss(parameters: Any) -> Any:
        logits = nnx.merge(GRAPH, _as_state(parameters))(tokens[:, :-1])
        return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()

    value, gradients = jax.value_and_grad(loss)(parameters)
    updates, state = ADAMW.update(gradients, state, parameters)
    return optax.apply_updates(parameters, updates), state, value


def _as_state(parameters: Any) -> Any:
    _, state = nnx.split(nnx.eval_shape(lambda: Transformer(rngs=nnx.Rngs(0))))
    nnx.replace_by_pure_dict(state, parameters)
    return state


ATTENTION = linen.MultiHeadDotProductAttention(num_heads=2, qkv_features=16)


def make_attention(key: Any) -> tuple[Any, ...]:
    """Parameters of one attention layer, and its input."""
    x = jax.random.normal(key, (2, 12, 16))
    return ATTENTION.init(key, x), x


def differentiate_attention(parameters: Any, x: Any) -> Any:
    """Gradients of all parameters: a key bias has none in exact arithmetic."""
    return jax.grad(lambda parameters: (ATTENTION.apply(parameters, x) ** 2).mean())(parameters)


def make_convolution(key: Any) -> tuple[Any, ...]:
    """A kernel with its bias, before batch normalisation, and images."""
    kernel, images = normal((3, 3, 3, 8), (4, 12, 12, 3))(key)
    return {"kernel": kernel / 5, "bias": jnp.full(8, 0.3)}, images


def differentiate_before_norm(parameters: Any, images: Any) -> Any:
    """Gradients of a convolution before batch normalisation: its bias has none in exact arithmetic."""

    def loss(parameters: Any) -> Any:
        hidden = jax.lax.conv_general_dilated(
            images, parameters["kernel"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        hidden = hidden + parameters["bias"]
        centred = hidden - hidden.mean((0, 1, 2))
        return (jax.nn.relu(centred * jax.lax.rsqrt(hidden.var((0, 1, 2)) + 1e-5)) ** 3).mean()

    return jax.grad(loss)(parameters)


OPTIMISERS = {
    "sgd": optax.sgd(0.1),
    "momentum": optax.sgd(0.1, momentum=0.9),
    "adam": optax.adam(1e-3),
    "adamw": optax.adamw(1e-3),
    "rmsprop": optax.rmsprop(1e-3),
    "lion": optax.lion(1e-4),
    "adafactor": optax.adafactor(1e-3),
    "muon": contrib.muon(1e-2),
}

PROGRAMS = (
    *(Program(f"3 steps of {name}", make_step(optimiser), make_network) for name, optimiser in OPTIMISERS.items()),
    Program("mixed precision, sgd", step_in_bfloat16, make_network),
    Program("transformer, adamw", step_transformer, make_transformer),
    Program("attention's gradient", differentiate_attention, make_attention),
    Program("gradient before batch norm", differentiate_before_norm, make_convolution),
    Program("loss", find_loss, make_network),
)
