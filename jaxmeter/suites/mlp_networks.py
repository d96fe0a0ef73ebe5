"""The MLPs of the sources, and the minimum cost of training them."""

from dataclasses import dataclass
from itertools import pairwise

import flax.linen as nn

from jaxmeter import Cost, itemsize
from jaxmeter.suites import models
from jaxmeter.suites.networks_in_numpy import SGD

PIXELS = 28 * 28
CLASSES = 10
"""Sizes of MNIST."""

RATE = 1e-4
"""Learning rate in Chavdarova, An Introduction to JAX, 2020, for a loss that is summed over the batch."""


@dataclass(frozen=True)
class Network:
    """A network of a source, and the batch size that the source trains it with.

    Args:
      widths: Widths of the layers, starting with the inputs.
    """

    widths: tuple[int, ...]
    activation: str
    batch: int

    @property
    def model(self):
        """The network in Flax."""
        return models.MLP(self.widths[1:], getattr(nn, self.activation))


NETWORKS = {
    "784-512-10": Network((PIXELS, 512, CLASSES), "swish", 32),  # JAX in Action
    "784-512-512-10": Network((PIXELS, 512, 512, CLASSES), "relu", 128),  # Chavdarova
}
TOY = Network((2, 10, 2), "relu", 128)  # JAX Speed Test


def params_in(widths):
    """Return the number of entries in kernels and biases."""
    return sum((inputs + 1) * outputs for inputs, outputs in pairwise(widths))


def products(widths):
    """Return the multiplications of a forward pass for one example: (in the first layer, in all layers)."""
    each = [inputs * outputs for inputs, outputs in pairwise(widths)]
    return each[0], sum(each)


def step_flops(widths, examples):
    """Return the FLOPs of a step: forward, gradient by kernels, and gradient by inputs except in the first layer."""
    first, every = products(widths)
    return 2 * examples * (3 * every - first)


def steps_cost(widths, examples, steps, *, update=SGD, moves=None):
    """Return the cost of steps that read each example once.

    Args:
      update: Numbers that the optimiser stores, and its operations, for each param.
      moves: Number of times that the state is read and written; by default once per step.
    """
    params = params_in(widths)
    numbers = 2 * (moves or steps) * update.numbers * params + examples * (widths[0] + 1)
    flops = step_flops(widths, examples) + steps * update.operations * params
    return Cost(flops=flops, bytes=numbers * itemsize("float32"))
