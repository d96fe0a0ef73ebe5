"""Precision: number formats and product precisions, with time and error of each next to each other in one case."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxmeter import Answer, Caching, Cost, Needs, Skip, itemsize, levels, workload
from jaxmeter.suites.cnn_networks import kernel_pixels

FORMATS = ("float64", "float32", "bfloat16", "float16")

WIDE = Needs(config={"jax_enable_x64": True})
"""float64 needs JAX's 64-bit mode. Every array of these programs names its format, so the other formats do not
change."""

ALLOWED = {"float64": 1e-12, "bfloat16": 3e-2, "float16": 5e-3}
"""Error allowed in each format, some tens of its rounding unit. The default is the error of float32, the baseline."""

BATCH = 8
CHANNELS = 32
KERNEL = 3

TERMS = 16
"""Terms of the exponential's Taylor series. At the largest x the next term, 2**16 / 16!, is 4e-10 of their sum."""

LARGEST = 2.0
"""Inputs of the series lie between -LARGEST and LARGEST."""


def in_every_format(key, shape):
    """Return the same normal numbers in each format, drawn in float32 and rounded: {format: array}."""
    numbers = jax.random.normal(key, shape, "float32")
    return {name: numbers.astype(name) for name in FORMATS}


def matrices(key, *, n):
    """Return two normal matrices, shapes (n, n), each in every format."""
    return tuple(in_every_format(half, (n, n)) for half in jax.random.split(key))


def images_and_kernels(key, *, side):
    """Return normal images (8, side, side, 32) and kernels (3, 3, 32, 32), each in every format."""
    first, second = jax.random.split(key)
    images = in_every_format(first, (BATCH, side, side, CHANNELS))
    return images, in_every_format(second, (KERNEL, KERNEL, CHANNELS, CHANNELS))


def values(key, *, n, dtype):
    """Return uniform numbers between -2 and 2, shape (n,)."""
    return jax.random.uniform(key, (n,), dtype, -LARGEST, LARGEST)


def convolution_in_numpy(images, kernels):
    """Sum the products of shifted images and kernel entries, (8, side, side, 32) -> (8, side, side, 32)."""
    side, margin = images.shape[1], KERNEL // 2
    padded = np.pad(images, ((0, 0), (margin, margin), (margin, margin), (0, 0)))
    return sum(
        padded[:, row : row + side, column : column + side] @ kernels[row, column]
        for row in range(KERNEL)
        for column in range(KERNEL)
    )


def convolution_cost(*, side):
    """Count a product and a sum for each kernel entry inside the image, but no bytes, which depend on the format."""
    return Cost(flops=2 * BATCH * kernel_pixels(side) * CHANNELS**2)


def series_in_numpy(x):
    """Evaluate the first 16 terms by Horner's scheme, (n,) -> (n,)."""
    total = np.zeros_like(x)
    for k in reversed(range(TERMS)):
        total = total * x + 1 / math.factorial(k)
    return total


def product_in_numpy(a, b):
    """`numpy.matmul` in float32, (n, n) @ (n, n) -> (n, n)."""
    return np.matmul(a["float32"], b["float32"])


def wide_product_in_numpy(a, b):
    """`numpy.matmul` in float64, (n, n) @ (n, n) -> (n, n)."""
    return np.matmul(a["float64"], b["float64"])


def only_where_products_differ(*, backend):
    """Return a Skip on a CPU, where every precision is float32; a GPU has TF32, a TPU products of bfloat16 parts."""
    return Skip("on a CPU every precision of float32 is the same as 'float32'") if backend == "cpu" else None


@workload(
    inputs=matrices,
    params={"n": levels(quick=512, full=2048, by_device={"gpu": (4096, 8192), "tpu": (4096, 8192)})},
    reference=wide_product_in_numpy,
    cost=lambda *, n: Cost(flops=2 * n**3),
    peers={
        "numpy": product_in_numpy,
        "numpy_float64": wide_product_in_numpy,
    },
    modes=("jit",),
    compiles=1,
    caching=Caching(new_shape=lambda *, n: {"n": n + 1}),
    needs=WIDE,
    implementation="float32",
    level="default",
    answer=Answer(
        "How fast is each number format?",
        "bfloat16:jit",
        against="float32:jit",
    ),
)
def precision_matmul(a, b):
    """Matrix product by format, (n, n) @ (n, n) -> (n, n), float32 at `highest`; errors include input rounding.

    Source: Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.5; JAX's `lax.Precision`.
    """
    return jnp.matmul(a["float32"], b["float32"], precision="highest")


@precision_matmul.implementation(name="float64", tolerance=ALLOWED["float64"])
def float64_product(a, b):
    """Matrix product in float64, (n, n) @ (n, n) -> (n, n)."""
    return jnp.matmul(a["float64"], b["float64"])


@precision_matmul.implementation(name="bfloat16", tolerance=ALLOWED["bfloat16"])
def bfloat16_product(a, b):
    """Matrix product in bfloat16, (n, n) @ (n, n) -> (n, n)."""
    return jnp.matmul(a["bfloat16"], b["bfloat16"])


@precision_matmul.implementation(name="float16", tolerance=ALLOWED["float16"])
def float16_product(a, b):
    """Matrix product in float16, (n, n) @ (n, n) -> (n, n)."""
    return jnp.matmul(a["float16"], b["float16"])


@precision_matmul.implementation(name="float32_high", limit=only_where_products_differ)
def high_product(a, b):
    """Matrix product in float32 at precision `high`, (n, n) @ (n, n) -> (n, n)."""
    return jnp.matmul(a["float32"], b["float32"], precision="high")


@precision_matmul.implementation(name="float32_default", limit=only_where_products_differ)
def default_product(a, b):
    """Matrix product in float32 at precision `default`, (n, n) @ (n, n) -> (n, n)."""
    return jnp.matmul(a["float32"], b["float32"], precision="default")


def convolve(images, kernels, precision=None):
    """Convolve images with kernels, padded with zeros, (8, side, side, 32), (3, 3, 32, 32) -> (8, side, side, 32)."""
    return jax.lax.conv_general_dilated(
        images,
        kernels,
        window_strides=(1, 1),
        padding="SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        precision=precision,
    )


@workload(
    inputs=images_and_kernels,
    params={"side": levels(quick=32, full=64, by_device={"gpu": 128, "tpu": 128})},
    reference=lambda images, kernels: convolution_in_numpy(images["float64"], kernels["float64"]),
    cost=convolution_cost,
    modes=("jit",),
    compiles=1,
    caching=Caching(new_shape=lambda *, side: {"side": side + 1}),
    needs=WIDE,
    implementation="float32",
    level="full",
)
def precision_convolution(images, kernels):
    """Convolution by format, (8, side, side, 32) and (3, 3, 32, 32) -> (8, side, side, 32), float32 at `highest`.

    Source: Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.1; JAX's `lax.Precision`.
    """
    return convolve(images["float32"], kernels["float32"], "highest")


@precision_convolution.implementation(name="float64", tolerance=ALLOWED["float64"])
def float64_convolution(images, kernels):
    """Convolution in float64, (8, side, side, 32) and (3, 3, 32, 32) -> (8, side, side, 32)."""
    return convolve(images["float64"], kernels["float64"])


@precision_convolution.implementation(name="bfloat16", tolerance=ALLOWED["bfloat16"])
def bfloat16_convolution(images, kernels):
    """Convolution in bfloat16, (8, side, side, 32) and (3, 3, 32, 32) -> (8, side, side, 32)."""
    return convolve(images["bfloat16"], kernels["bfloat16"])


@precision_convolution.implementation(name="float16", tolerance=ALLOWED["float16"])
def float16_convolution(images, kernels):
    """Convolution in float16, (8, side, side, 32) and (3, 3, 32, 32) -> (8, side, side, 32)."""
    return convolve(images["float16"], kernels["float16"])


@precision_convolution.implementation(name="float32_default", limit=only_where_products_differ)
def default_convolution(images, kernels):
    """Convolution in float32 at precision `default`, (8, side, side, 32) and (3, 3, 32, 32) -> (8, side, side, 32)."""
    return convolve(images["float32"], kernels["float32"], "default")


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
    level="full",
)
def precision_fused(x):
    """Sixteen terms of the exponential's series, (n,) -> (n,); fused, a product and a sum can round once.

    Source: Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 2.6.
    """
    total = jnp.zeros_like(x)
    for k in reversed(range(TERMS)):
        total = total * x + 1 / math.factorial(k)
    return total
