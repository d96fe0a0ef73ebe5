"""Steps of optimisers whose updates are smaller than the tolerance of the weights, and faults in the update alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax

from benchmarks.correctness.program import Program
from benchmarks.correctness.training import WIDTHS, find_loss, make_network

LAYER = 1
"""The layer that a stale step does not update."""


def make_step(optimiser: Any, compute: str | None) -> Callable[..., Any]:
    """One step from a fresh state: the weights and the loss.

    Args:
      compute: The format of products and gradients; None for that of the weights.
    """

    def step(layers: Any, batch: Any) -> Any:
        def loss(layers: Any) -> Any:
            if compute is None:
                return find_loss(layers, batch)
            narrow = jax.tree.map(lambda leaf: leaf.astype(compute), (layers, batch))
            return find_loss(*narrow).astype("float32")

        value, gradients = jax.value_and_grad(loss)(layers)
        updates, _ = optimiser.update(gradients, optimiser.init(layers), layers)
        return optax.apply_updates(layers, updates), value

    return step


def freeze(step: Callable[..., Any], layers: Any, batch: Any) -> Any:
    """The loss of the step, and weights that stay as they are."""
    return layers, step(layers, batch)[1]


def reverse(step: Callable[..., Any], layers: Any, batch: Any) -> Any:
    """The step in the other direction."""
    updated, value = step(layers, batch)

    def turn(old: Any, new: Any) -> Any:
        wide = jnp.promote_types(old.dtype, "float32")
        return (2 * old.astype(wide) - new.astype(wide)).astype(old.dtype)

    return jax.tree.map(turn, layers, updated), value


def leave_one_layer(step: Callable[..., Any], layers: Any, batch: Any) -> Any:
    """The step, in which one layer is not updated."""
    updated, value = step(layers, batch)
    return [old if place == LAYER else new for place, (old, new) in enumerate(zip(layers, updated, strict=True))], value


FAULTS = {"frozen": freeze, "reversed": reverse, "stale layer": leave_one_layer}


def make_weights(dtype: str, key: Any) -> tuple[Any, ...]:
    """Weights and biases that are not zero, and a batch."""
    layers, batch = make_network(key)
    keys = jax.random.split(key, len(WIDTHS))
    layers = [
        {"w": layer["w"], "b": 0.3 * jax.random.normal(each, layer["b"].shape)}
        for layer, each in zip(layers, keys, strict=False)
    ]
    return tuple(jax.tree.map(lambda leaf: leaf.astype(dtype), (layers, batch)))


OPTIMISERS = {"sgd": (optax.sgd, 1e-4), "adam": (optax.adam, 1e-5), "adamw": (optax.adamw, 1e-5)}
"""With a rate whose updates are lost in what float32 allows of the weights."""

NARROW = 50
"""How many times that rate a step has whose weights or products are in bfloat16: it allows 1,500 times as much. Of
weights in bfloat16 such an update is less than a unit in the last place."""

SEVERAL_UNITS = 1_000
"""How many times that rate an update of such weights has several units. The rate is 2 % of the largest weight then, and
the signs that rounding turns in Adam's first step are beyond what bfloat16 allows of the weights."""


def _make(name: str, dtype: str, compute: str | None, times: int) -> Program:
    make, rate = OPTIMISERS[name]
    step = make_step(make(times * rate), compute)
    where = f" by {compute} products" if compute else ""
    where += f" of {dtype} weights, {times} times" if dtype != "float32" else ""
    faults = {fault: partial(change, step) for fault, change in FAULTS.items()}
    return Program(f"small {name} step{where}", step, partial(make_weights, dtype), update_faults=faults)


PROGRAMS = tuple(
    _make(name, dtype, compute, times)
    for dtype, compute, times in (
        ("float32", None, 1),
        ("float32", "bfloat16", NARROW),
        ("bfloat16", None, NARROW),
        ("bfloat16", None, SEVERAL_UNITS),
    )
    for name in OPTIMISERS
)
