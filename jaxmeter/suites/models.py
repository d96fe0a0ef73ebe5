"""Models that suites train: networks, initial states, losses, and training steps."""

from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax


class MLP(nn.Module):
    """Dense layers with an activation between them, (batch, inputs) -> logits (batch, widths[-1])."""

    widths: tuple[int, ...]
    activation: Callable[[Any], Any] = nn.relu

    @nn.compact
    def __call__(self, inputs):
        """Return the logits of a batch."""
        hidden = inputs
        for width in self.widths[:-1]:
            hidden = self.activation(nn.Dense(width)(hidden))
        return nn.Dense(self.widths[-1])(hidden)


CNN_IMAGE = (32, 32, 3)
CNN_CHANNELS = (32, 64)
CNN_HIDDEN = 256
CNN_CLASSES = 10
"""Sizes of CIFAR-10 images and of the network in the notebook "JAX Speed Test"."""

CNN_RATE = 1e-4
"""Learning rate of the notebook "JAX Speed Test"."""

CNN_OPTIMISER = optax.adam(CNN_RATE)

CNN_SECOND_MOMENT = 1e-5
"""Initial value of Adam's second moment, instead of 0. From 0, Adam's first step is g / |g|. Where the gradient g is
nearly 0, rounding decides its sign, so no reference could distinguish right from wrong."""


class CNN(nn.Module):
    """Convolutions with average pooling, then dense layers, in training mode: images (b, h, w, 3) -> logits.

    Images of uint8 are divided by 255.

    Args:
      channels: Output channels of each convolution.
      widths: Widths of the dense layers.
      dtype: Format of the computation; parameters are float32.
      dropout: Dropout rate of the hidden values of the dense layers.
      batch_norm: Whether batch normalisation follows each convolution, which then has no bias.
    """

    channels: tuple[int, ...] = CNN_CHANNELS
    widths: tuple[int, ...] = (CNN_HIDDEN, CNN_CLASSES)
    dtype: Any = jnp.float32
    dropout: float = 0.0
    batch_norm: bool = False

    @nn.compact
    def __call__(self, images):
        """Return the logits of a batch."""
        x = images.astype(self.dtype)
        if images.dtype == jnp.uint8:
            x = x / 255
        for channels in self.channels:
            x = nn.Conv(channels, (3, 3), use_bias=not self.batch_norm, dtype=self.dtype)(x)
            if self.batch_norm:
                x = nn.BatchNorm(use_running_average=False, dtype=self.dtype)(x)
            x = nn.avg_pool(nn.relu(x), (2, 2), strides=(2, 2))
        x = x.reshape(x.shape[0], -1)
        for width in self.widths[:-1]:
            x = nn.relu(nn.Dense(width, dtype=self.dtype)(x))
            x = nn.Dropout(self.dropout, deterministic=False)(x)
        return nn.Dense(self.widths[-1], dtype=self.dtype)(x)


def cross_entropy(logits, labels):
    """Return the softmax cross-entropy of each example in float32, (batch, classes), (batch,) -> (batch,)."""
    return optax.losses.softmax_cross_entropy_with_integer_labels(logits.astype(jnp.float32), labels)


def mean_cross_entropy(logits, labels):
    """Return the mean cross-entropy of a batch, a scalar."""
    return jnp.mean(cross_entropy(logits, labels))


def summed_cross_entropy(logits, labels):
    """Return the summed cross-entropy of a batch; its gradient grows with the batch, so learning rates are small."""
    return jnp.sum(cross_entropy(logits, labels))


def initial_state(model, optimiser, key, example):
    """Return the state that a training step carries, as NumPy arrays: (Flax variables, optimiser state).

    NumPy draws normal kernels with variance 1 / fan-in, because compiling Flax's own initialisers takes seconds.

    Args:
      example: Shape and dtype of a batch, or of one example with a batch axis.
    """
    generator = np.random.default_rng(np.asarray(jax.random.key_data(key)))

    def drawn(path, leaf):
        kind = path[-1].key
        if kind == "kernel":
            fan_in = np.prod(leaf.shape[:-1])
            return generator.normal(0, fan_in**-0.5, leaf.shape).astype(leaf.dtype)
        return np.full(leaf.shape, 1 if kind in ("scale", "var") else 0, leaf.dtype)

    variables = jax.tree_util.tree_map_with_path(drawn, jax.eval_shape(model.init, key, example))
    memory = jax.eval_shape(optimiser.init, variables["params"])
    return variables, jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), memory)


def cnn_state(key, model, dtype="uint8"):
    """Return the state before the first step of a CNN, chosen so that a reference can check the step."""
    example = jax.ShapeDtypeStruct((1, *CNN_IMAGE), dtype)
    variables, (adam, *rest) = initial_state(model, CNN_OPTIMISER, key, example)
    nu = jax.tree.map(lambda leaf: np.full_like(leaf, CNN_SECOND_MOMENT), adam.nu)
    return variables, (adam._replace(nu=nu), *rest)


def gradient_step(model, loss):
    """Return a function (variables, inputs, labels) -> ((loss, changed variables), gradient by params)."""

    def gradient(variables, inputs, labels, rngs=None):
        def loss_of(params):
            tried = {**variables, "params": params}
            logits, changed = model.apply(tried, inputs, rngs=rngs, mutable=["batch_stats"])
            return loss(logits, labels), changed

        return jax.value_and_grad(loss_of, has_aux=True)(variables["params"])

    return gradient


def update_step(optimiser):
    """Return a function (state, gradient, variables that the model changed) -> state."""

    def update(state, gradient, changed):
        variables, memory = state
        params = variables["params"]
        changes, memory = optimiser.update(gradient, memory, params)
        return {**variables, **changed, "params": optax.apply_updates(params, changes)}, memory

    return update


def train_step(model, optimiser, loss):
    """Return a training step (state, inputs, labels) -> (state, loss before the step); `rngs` are Flax random keys."""
    gradient, update = gradient_step(model, loss), update_step(optimiser)

    def step(state, inputs, labels, rngs=None):
        (value, changed), slopes = gradient(state[0], inputs, labels, rngs)
        return update(state, slopes, changed), value

    return step


def follow(step, state, batches):
    """Run steps over batches without waiting for results: (state, losses)."""
    losses = []
    for inputs, labels in batches:
        state, loss = step(state, inputs, labels)
        losses.append(loss)
    return state, losses
