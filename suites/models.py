"""Models that suites train: networks, initial states, losses, and the training steps that are made of them."""

from collections.abc import Callable
from typing import Any, NamedTuple

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


CNN_IMAGE = (32, 32, 3)
CNN_CHANNELS = (32, 64)
CNN_HIDDEN = 256
CNN_CLASSES = 10
"""Of CIFAR-10's images, and of the network in the notebook "JAX Speed Test"."""

CNN_OPTIMISER = optax.adam(1e-4)
"""With that notebook's learning rate."""

CNN_SECOND_MOMENT = 1e-5
"""What Adam remembers of squared gradients before the first step, instead of 0: from 0, its first step is g / |g|, and
where the gradient g is nearly 0 its sign is a matter of rounding, so that no reference could tell right from wrong."""


class CNN(nn.Module):
    """Two convolutions with maximum pooling and two dense layers, images (b, 32, 32, 3) uint8 -> logits (b, 10).

    Args:
      dtype: What is computed in; parameters are float32.
      dropout: Rate at which the hidden layer's values are left out in training.
      batch_norm: Whether batch normalisation follows each convolution, which then has no bias.
    """

    dtype: Any = jnp.float32
    dropout: float = 0.0
    batch_norm: bool = False

    @nn.compact
    def __call__(self, images, *, train=False):
        """Logits of a batch."""
        x = images.astype(self.dtype) / 255
        for channels in CNN_CHANNELS:
            x = nn.Conv(channels, (3, 3), use_bias=not self.batch_norm, dtype=self.dtype)(x)
            if self.batch_norm:
                x = nn.BatchNorm(use_running_average=not train, dtype=self.dtype)(x)
            x = nn.max_pool(nn.relu(x), (2, 2), strides=(2, 2))
        x = nn.relu(nn.Dense(CNN_HIDDEN, dtype=self.dtype)(x.reshape(x.shape[0], -1)))
        x = nn.Dropout(self.dropout, deterministic=not train)(x)
        return nn.Dense(CNN_CLASSES, dtype=self.dtype)(x)


class CNNState(NamedTuple):
    """What a training step of the CNN carries.

    Args:
      batch_stats: Running means and variances of batch normalisation; empty without it.
      optimiser: Adam's state as Optax has it.
    """

    params: Any
    batch_stats: Any
    optimiser: Any


def cnn_state(key, model):
    """The state before the first step, in NumPy's arrays: compiling Flax's own initialisers takes seconds.

    Kernels are normal with variance 1 / fan-in.
    """
    generator = np.random.default_rng(np.asarray(jax.random.key_data(key)))

    def drawn(path, leaf):
        kind = path[-1].key
        if kind == "kernel":
            fan_in = np.prod(leaf.shape[:-1])
            return generator.normal(0, fan_in**-0.5, leaf.shape).astype(leaf.dtype)
        return np.full(leaf.shape, 1 if kind in ("scale", "var") else 0, leaf.dtype)

    images = jax.ShapeDtypeStruct((1, *CNN_IMAGE), jnp.uint8)
    variables = jax.tree_util.tree_map_with_path(drawn, jax.eval_shape(model.init, key, images))
    params = variables["params"]
    shapes = jax.eval_shape(CNN_OPTIMISER.init, params)
    adam, *rest = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)
    adam = adam._replace(nu=jax.tree.map(lambda leaf: np.full_like(leaf, CNN_SECOND_MOMENT), adam.nu))
    return CNNState(params, variables.get("batch_stats", {}), (adam, *rest))


def cnn_step(model, state, images, labels, rngs=None):
    """One step of training: (state, images (b, 32, 32, 3) uint8, labels (b,)) -> (state, mean loss before the step).

    Args:
      rngs: Flax's random keys, `{"dropout": key}`.
    """

    def loss_of(params):
        logits, changed = model.apply(
            {"params": params, "batch_stats": state.batch_stats},
            images,
            train=True,
            rngs=rngs,
            mutable=["batch_stats"],
        )
        return mean_cross_entropy(logits.astype(jnp.float32), labels), changed.get("batch_stats", {})

    (loss, batch_stats), gradient = jax.value_and_grad(loss_of, has_aux=True)(state.params)
    changes, optimiser = CNN_OPTIMISER.update(gradient, state.optimiser, state.params)
    return CNNState(optax.apply_updates(state.params, changes), batch_stats, optimiser), loss
