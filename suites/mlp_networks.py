"""The MLPs of the sources, and what training them costs at least."""

from dataclasses import dataclass
from itertools import pairwise

import flax.linen as nn

from harness import Cost, itemsize
from suites import models

PIXELS = 28 * 28
CLASSES = 10
"""Of MNIST."""

RATE = 1e-4
"""Learning rate in Chavdarova, An Introduction to JAX, 2020: of a loss that is summed over the batch."""


@dataclass(frozen=True)
class Network:
    """A network of the sources, with the batch that they train it with.

    Args:
      widths: Of its layers, the inputs first.
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
    """Numbers in kernels and biases."""
    return sum((inputs + 1) * outputs for inputs, outputs in pairwise(widths))


def products(widths):
    """Multiplications of the forward pass for one example, those of the first layer apart."""
    each = [inputs * outputs for inputs, outputs in pairwise(widths)]
    return each[0], sum(each)


def step_flops(widths, examples):
    """Products of a step: forward, gradient by kernels, and gradient by inputs in all layers but the first."""
    first, every = products(widths)
    return 2 * examples * (3 * every - first)


def steps_cost(widths, examples, steps, *, kept=1):
    """Of steps that read and write the state once each, and read each example once.

    Args:
      kept: Numbers that the state holds for each param.
    """
    state = kept * params_in(widths)
    numbers = 2 * steps * state + examples * (widths[0] + 1)
    return Cost(flops=step_flops(widths, examples), bytes=numbers * itemsize("float32"))
