"""What suites that train CNNs have in common: the error that a step is allowed, and what it costs at least."""

import math

from jaxmeter import Cost, itemsize
from jaxmeter.suites.models import CNN_IMAGE
from jaxmeter.suites.networks_in_numpy import ADAM

ROUTED = 2e-2
"""Error allowed in a step. Whether a value is positive is a matter of rounding where it is nearly 0, and a slope passes
or does not; slopes that nearly cancel, as those of the first convolution's bias, keep fewer digits. Measured at 8 and
128 images, of the largest slope: 1.1e-3 and 2.6e-3, with batch normalisation 1.7e-3 and 2.2e-3. TF32 rounds coarser."""


def kernel_pixels(side):
    """How many pixels a 3x3 kernel sees, summed over its places on an image: those beyond the border do not count."""
    return (3 * side - 2) ** 2  # along a side, the first and the last place miss one pixel each


def layers(model):
    """Of each layer (multiplications of its forward pass for one image, parameters)."""
    side, _, inputs = CNN_IMAGE
    made = []
    for channels in model.channels:
        # Batch normalisation has a scale and a bias, and its convolution none.
        beside = 2 if model.batch_norm else 1
        made.append((kernel_pixels(side) * inputs * channels, (9 * inputs + beside) * channels))
        side, inputs = side // 2, channels
    inputs *= side**2
    for width in model.widths:
        made.append((inputs * width, (inputs + 1) * width))
        inputs = width
    return made


def params_in(model):
    """Numbers that are trained."""
    return sum(params for _, params in layers(model))


def forward_flops(model, batch):
    """Of the products of a forward pass, a product and a sum each."""
    return 2 * batch * sum(products for products, _ in layers(model))


def step_cost(model, batch, dtype="uint8"):
    """Of a step with Adam: products three times, but that for the slope of images; parameters and moments updated.

    Args:
      dtype: Of images and labels, which are read once.
    """
    first, _ = layers(model)[0]
    params = params_in(model)
    return Cost(
        flops=3 * forward_flops(model, batch) - 2 * batch * first + ADAM.operations * params,
        bytes=2 * ADAM.numbers * params * itemsize("float32") + batch * (math.prod(CNN_IMAGE) + 1) * itemsize(dtype),
    )
