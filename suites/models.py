"""Models that suites train: networks, initial states, losses, and the one training step that is made of them."""

from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax


class MLP(nn.Module):
    """Dense layers with an activation between them, (batch, inputs) -> logits (batch, widths[-1])."""

    widths: tuple[int, ...]
    activation: Callable[[Any], Any] = nn.relu

    @nn.compact
    def __call__(self, inputs):
        """Logits of a batch."""
        hidden = inputs
        for width in self.widths[:-1]:
            hidden = self.activation(nn.Dense(width)(hidden))
        return nn.Dense(self.widths[-1])(hidden)


def cross_entropy(logits, labels):
    """Softmax cross-entropy of each example, logits (batch, classes), labels (batch,) -> (batch,)."""
    return optax.losses.softmax_cross_entropy_with_integer_labels(logits, labels)


def mean_cross_entropy(logits, labels):
    """Its mean over a batch, a scalar."""
    return jnp.mean(cross_entropy(logits, labels))


def summed_cross_entropy(logits, labels):
    """Its sum over a batch, a scalar: the gradient grows with the batch, so learning rates are small."""
    return jnp.sum(cross_entropy(logits, labels))


def initial_state(model, optimiser, key, example):
    """What a training step carries, (params, what the optimiser remembers).

    Args:
      example: Inputs of one batch, or of one example with a batch axis.
    """
    params = model.init(key, example)
    return params, optimiser.init(params)


def gradient_step(model, loss):
    """A function (params, inputs, labels) -> (loss, its gradient)."""

    def gradient(params, inputs, labels):
        return jax.value_and_grad(lambda tried: loss(model.apply(tried, inputs), labels))(params)

    return gradient


def update_step(optimiser):
    """A function (state, gradient) -> state."""

    def update(state, gradient):
        params, memory = state
        changes, memory = optimiser.update(gradient, memory, params)
        return optax.apply_updates(params, changes), memory

    return update


def train_step(model, optimiser, loss):
    """A training step (state, inputs, labels) -> (state, the loss before it)."""
    gradient, update = gradient_step(model, loss), update_step(optimiser)

    def step(state, inputs, labels):
        value, slope = gradient(state[0], inputs, labels)
        return update(state, slope), value

    return step
