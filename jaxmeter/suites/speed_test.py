"""The notebook "JAX Speed Test": its two jitted functions, its loop over batches, and a NumPy reference of both."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
import optax

from jaxmeter.suites import models
from jaxmeter.suites import networks_in_numpy as reference

SPEED_TEST = 'Notebook "JAX Speed Test"'


class Functions(NamedTuple):
    """The functions that the notebook jits.

    Args:
      gradient: (params, inputs, one-hot targets) -> ((mean loss, accuracy), slopes).
      update: (state, slopes) -> state.
    """

    gradient: Callable[..., Any]
    update: Callable[..., Any]

    def jitted(self):
        """Return both functions, jitted."""
        return Functions(*map(jax.jit, self))


def functions_of(predict, optimiser):
    """Return both functions for a network (params, inputs) -> logits."""

    def loss_and_accuracy(params, inputs, targets):
        predicted = predict(params, inputs)
        loss = optax.losses.softmax_cross_entropy(predicted, targets).mean()
        return loss, (predicted.argmax(1) == targets.argmax(1)).mean()

    def update(state, slopes):
        return models.update_step(optimiser)(state, slopes, {})

    return Functions(jax.value_and_grad(loss_and_accuracy, has_aux=True), update)


def train(functions, state, batches):
    """Run steps over batches: (state, losses, [mean loss, mean accuracy]); the means are the first wait."""
    losses, accuracies = [], []
    for inputs, targets in batches:
        (loss, accuracy), slopes = functions.gradient(state[0]["params"], inputs, targets)
        state = functions.update(state, slopes)
        losses.append(loss)
        accuracies.append(accuracy)
    return state, losses, [np.mean(losses), np.mean(accuracies)]


def one_hot(labels, classes):
    """Encode labels as one-hot rows, (b,) -> (b, classes) float32."""
    return np.eye(classes, dtype=np.float32)[labels]


def train_in_numpy(state, batches, *, step, network):
    """Run `train` over the given batches in NumPy.

    Args:
      step: (state, inputs, labels) -> (state, loss).
      network: Function from params to layers.
    """
    losses, accuracies = [], []
    for inputs, targets in batches:
        labels = targets.argmax(1)
        logits = reference.output_of(reference.forward(network(state[0]["params"]), inputs))
        accuracies.append((logits.argmax(1) == labels).mean())
        state, loss = step(state, inputs, labels)
        losses.append(loss)
    return state, losses, [np.mean(losses), np.mean(accuracies)]
