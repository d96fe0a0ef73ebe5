"""Precision: number formats and product precisions, the time and the error of each.

Each is a case of its own, beside NumPy where that has the format; no ratio of two formats is measured.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from harness import Caching, Cost, Needs, Peer, Skip, itemsize, levels, workload
from suites.cnn_networks import kernel_pixels

FORMATS_OF_GPU = ("float32 default", "float32 high")
"""On a CPU every precision of float32 is plain float32; a GPU has TF32, a TPU products of bfloat16 parts."""

BATCH = 8
CHANNELS = 32
KERNEL = 3

TERMS = 16
"""Of the exponential's Taylor series: at the largest x the next one, 2**16 / 16!, is 4e-10 of their sum."""

LARGEST = 2.0
"""Inputs of the series lie between minus and plus this."""


def dtype_of(arithmetic):
    """The dtype's name in 'float32 highest' or 'bfloat16'."""
    return arithmetic.partition(" ")[0]


def precision_of(arithmetic):
    """The product precision in 'float32 highest'; None where the format has but one."""
    return arithmetic.partition(" ")[2] or None


def wide_where_needed(*, arithmetic):
    """float64 exists only with JAX's 64-bit mode, which changes other programs; so only its own cases have it."""
    return {"jax_enable_x64": dtype_of(arithmetic) == "float64"}


def matrices(key, *, n, arithmetic):
    """Two standard normal matrices, shapes (n, n)."""
    return tuple(jax.random.normal(half, (n, n), dtype_of(arithmetic)) for half in jax.random.split(key))


def images_and_kernels(key, *, side, arithmetic):
    """Standard normal images (8, side, side, 32) and kernels (3, 3, 32, 32)."""
    first, second = jax.random.split(key)
    images = jax.random.normal(first, (BATCH, side, side, CHANNELS), dtype_of(arithmetic))
    return images, jax.random.normal(second, (KERNEL, KERNEL, CHANNELS, CHANNELS), dtype_of(arithmetic))


def values(key, *, n, dtype):
    """Uniform between -2 and 2, shape (n,)."""
    return jax.random.uniform(key, (n,), dtype, -LARGEST, LARGEST)


def convolution_in_numpy(images, kernels):
    """The sum over the kernel's places of a product of shifted images, (8, side, side, 32) -> (8, side, side, 32)."""
    side, margin = images.shape[1], KERNEL // 2
    padded = np.pad(images, ((0, 0), (margin, margin), (margin, margin), (0, 0)))
    return sum(
        padded[:, row : row + side, column : column + side] @ kernels[row, column]
        for row in range(KERNEL)
        for column in range(KERNEL)
    )


def convolution_cost(*, side, arithmetic):
    """A product and a sum where a kernel's place falls inside the image; images and kernels read, images written."""
    numbers = 2 * BATCH * side**2 * CHANNELS + KERNEL**2 * CHANNELS**2
    return Cost(flops=2 * BATCH * kernel_pixels(side) * CHANNELS**2, bytes=numbers * itemsize(dtype_of(arithmetic)))


def series_in_numpy(x):
    """Horner's scheme for the first 16 terms, (n,) -> (n,)."""
    total = np.zeros_like(x)
    for k in reversed(range(TERMS)):
        total = total * x + 1 / math.factorial(k)
    return total


def formats_of_numpy(arithmetic):
    """NumPy's own products are those of float64 and float32."""
    if dtype_of(arithmetic) in ("bfloat16", "float16"):
        return Skip("NumPy has no fast 16-bit arithmetic")
    if precision_of(arithmetic) in ("default", "high"):
        return Skip("NumPy has one precision; it is measured beside 'float32 highest'")
    return None


@workload(
    inputs=matrices,
    params={
        "n": levels(quick=512, full=2048, by_device={"gpu": (4096, 8192), "tpu": (4096, 8192)}),
        "arithmetic": levels(
            quick="float32 highest",
            default=("float64", "bfloat16", "float16"),
            by_device={"gpu": FORMATS_OF_GPU, "tpu": FORMATS_OF_GPU},
        ),
    },
    reference=np.matmul,
    cost=lambda *, n, arithmetic: Cost(flops=2 * n**3, bytes=3 * n**2 * itemsize(dtype_of(arithmetic))),
    peers={"numpy": Peer(np.matmul, limit=formats_of_numpy)},
    modes=("jit",),
    compiles=1,
    caching=Caching(new_shape=lambda *, n: {"n": n + 1}),
    needs=Needs(config=wide_where_needed),
)
def precision_matmul(a, b, *, arithmetic):
    """Matrix product in one format, (n, n) @ (n, n) -> (n, n). The error is the product's: inputs are in the format.

    Source: Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.5.
    """
    return jnp.matmul(a, b, precision=precision_of(arithmetic))


@workload(
    inputs=images_and_kernels,
    params={
        "side": levels(quick=32, full=64, by_device={"gpu": 128, "tpu": 128}),
        "arithmetic": levels(
            quick="float32 highest",
            default="bfloat16",
            full=("float64", "float16"),
            by_device={"gpu": (*FORMATS_OF_GPU, "float16"), "tpu": FORMATS_OF_GPU},
        ),
    },
    reference=convolution_in_numpy,
    cost=convolution_cost,
    modes=("jit",),
    compiles=1,
    caching=Caching(new_shape=lambda *, side: {"side": side + 1}),
    needs=Needs(config=wide_where_needed),
    level="default",
)
def precision_convolution(images, kernels, *, arithmetic):
    """Convolution in one format, (8, side, side, 32) and (3, 3, 32, 32) -> (8, side, side, 32).

    Source: Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.1; JAX's `lax.Precision`.
    """
    return jax.lax.conv_general_dilated(
        images,
        kernels,
        window_strides=(1, 1),
        padding="SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        precision=precision_of(arithmetic),
    )


@workload(
    inputs=values,
    params={
        "n": levels(default=1_000_000, full=10_000, by_device={"gpu": 10_000_000, "tpu": 10_000_000}),
        "dtype": levels(quick="float32", full="bfloat16", by_device={"gpu": "bfloat16", "tpu": "bfloat16"}),
    },
    reference=series_in_numpy,
    cost=lambda *, n, dtype: Cost(flops=2 * (TERMS - 1) * n, bytes=2 * n * itemsize(dtype)),
    modes=("eager", "jit"),
    compiles=1,
    caching=Caching(new_shape=lambda *, n: {"n": n + 1}),
    level="default",
)
def precision_fused(x):
    """Sixteen terms of the exponential's series, (n,) -> (n,): fused, a product and a sum may round once, not twice.

    Source: Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 2.6.
    """
    total = jnp.zeros_like(x)
    for k in reversed(range(TERMS)):
        total = total * x + 1 / math.factorial(k)
    return total
