"""MNIST as two sources train it: networks, losses and updates written by hand, and the same steps in NumPy."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from jaxmeter.suites import networks_in_numpy as reference
from jaxmeter.suites.mlp_networks import NETWORKS, RATE

FIRST_RATE, DECAY, DECAYS_IN = 1.0, 0.95, 5
"""JAX in Action, chapter 2: the rate falls by the factor DECAY every DECAYS_IN epochs."""


# JAX in Action, chapter 2: 784-512-10, one example at a time, vectorised by `vmap`


def logits_of_one(params, image):
    """Return the logits of one image, (784,) -> (10,), with swish between the layers."""
    first, last = params["Dense_0"], params["Dense_1"]
    hidden = image @ first["kernel"] + first["bias"]
    return (hidden * jax.nn.sigmoid(hidden)) @ last["kernel"] + last["bias"]


def mean_loss(params, images, targets):
    """Return the mean loss over batch and classes, with a logsumexp over the whole batch, as in the book.

    This loss is not cross-entropy, because its logsumexp has no axis. Its gradient still descends.
    """
    logits = jax.vmap(logits_of_one, (None, 0))(params, images)
    return -jnp.mean(targets * (logits - logsumexp(logits)))


def decayed_update(params, images, targets, epoch=0):
    """Run one step, (params, (32, 784), (32, 10) one-hot) -> (params, loss), at the rate of the first epoch."""
    loss, slopes = jax.value_and_grad(mean_loss)(params, images, targets)
    rate = FIRST_RATE * DECAY ** (epoch / DECAYS_IN)
    return jax.tree.map(lambda param, slope: param - rate * slope, params, slopes), loss


def mean_loss_in_numpy(logits, labels):
    """Return the loss of `mean_loss`, and its gradient by the logits."""
    largest = logits.max()
    shares = np.exp(logits - largest)
    total = shares.sum()
    targets = np.eye(logits.shape[1])[labels]
    loss = -(targets * (logits - largest - np.log(total))).mean()
    return loss, (len(labels) * shares / total - targets) / logits.size


# Chavdarova 2020: 784-512-512-10


@jax.jit
def relu(x):
    """Compute relu in a separate jitted function, as in the source."""
    return jnp.maximum(0, x)


@jax.jit
def summed_loss(params, images, targets):
    """Return the cross-entropy, summed over the batch."""
    for number in range(len(params) - 1):
        layer = params[f"Dense_{number}"]
        images = relu(images @ layer["kernel"] + layer["bias"])
    last = params[f"Dense_{len(params) - 1}"]
    output = images @ last["kernel"] + last["bias"]
    return -jnp.sum((output - logsumexp(output, axis=1, keepdims=True)) * targets)


def plain_update(params, images, targets):
    """Run one step, (params, (128, 784), (128, 10) one-hot) -> (params, loss)."""
    loss, slopes = jax.value_and_grad(summed_loss)(params, images, targets)
    return jax.tree.map(lambda param, slope: param - RATE * slope, params, slopes), loss


def summed_loss_in_numpy(logits, labels):
    """Return the loss of `summed_loss`, and its gradient by the logits."""
    targets = np.eye(logits.shape[1])[labels]
    return reference.cross_entropy(logits, labels).sum(), reference.softmax(logits) - targets


class Program(NamedTuple):
    """The training step of a source.

    Args:
      update: (params, images, one-hot targets) -> (params, loss).
      loss_in_numpy: (logits, labels) -> (loss, its gradient by the logits).
      rate: Learning rate of the first epoch.
    """

    update: Callable[..., Any]
    loss_in_numpy: Callable[[Any, Any], tuple[Any, Any]]
    rate: float


PROGRAMS = {
    "784-512-10": Program(decayed_update, mean_loss_in_numpy, FIRST_RATE),
    "784-512-512-10": Program(plain_update, summed_loss_in_numpy, RATE),
}


@cache
def jitted_update(network):
    """Return the step as one jitted program, as in both sources."""
    return jax.jit(PROGRAMS[network].update)


def update_in_numpy(params, images, labels, *, network):
    """Compute a step in NumPy: (params, the loss before the step)."""
    activation = reference.ACTIVATIONS[NETWORKS[network].activation]
    passed = reference.forward(reference.mlp(params, activation), images)
    loss, slope = PROGRAMS[network].loss_in_numpy(reference.output_of(passed), labels)
    moved, _ = reference.sgd(params, (), reference.backward(passed, slope), rate=PROGRAMS[network].rate)
    return moved, loss
