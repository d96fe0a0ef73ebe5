"""Tolerance and minimum cost of a training step, shared by the suites that train CNNs."""

import math

from jaxmeter import Cost, itemsize
from jaxmeter.suites.models import CNN_IMAGE
from jaxmeter.suites.networks_in_numpy import ADAM

ROUTED = 2e-2
"""Error allowed in a step. Rounding decides whether a value near 0 is positive, and so whether a gradient passes.
Gradients that nearly cancel, such as those of the first convolution's bias, keep fewer digits. Measured at 8 and 128
images, relative to the largest gradient: 1.1e-3 and 2.6e-3; with batch normalisation 1.7e-3 and 2.2e-3. TF32 rounds
more coarsely."""


def kernel_pixels(side):
    """Return the number of pixels that a 3x3 kernel reads, summed over its positions; pixels outside do not count."""
    return (3 * side - 2) ** 2  # along a side, the first and the last position miss one pixel each


def layers(model):
    """Return (multiplications of its forward pass for one image, parameters) of each layer."""
    side, _, inputs = CNN_IMAGE
    made = []
    for channels in model.channels:
        # Batch normalisation has a scale and a bias, and its convolution has no bias.
        beside = 2 if model.batch_norm else 1
        made.append((kernel_pixels(side) * inputs * channels, (9 * inputs + beside) * channels))
        side, inputs = side // 2, channels
    inputs *= side**2
    for width in model.widths:
        made.append((inputs * width, (inputs + 1) * width))
        inputs = width
    return made


def params_in(model):
    """Return the number of trained parameters."""
    return sum(params for _, params in layers(model))


def forward_flops(model, batch):
    """Return the FLOPs of the products of a forward pass: a multiplication and an addition each."""
    return 2 * batch * sum(products for products, _ in layers(model))


def step_cost(model, batch, dtype="uint8"):
    """Return the cost of a step with Adam: three times the forward products, without the gradient of the images.

    Parameters and moments are updated.

    Args:
      dtype: Type of images and labels, which are read once.
    """
    first, _ = layers(model)[0]
    params = params_in(model)
    return Cost(
        flops=3 * forward_flops(model, batch) - 2 * batch * first + ADAM.operations * params,
        bytes=2 * ADAM.numbers * params * itemsize("float32") + batch * (math.prod(CNN_IMAGE) + 1) * itemsize(dtype),
    )
