"""Matrix product: large ones are compute-bound; precision compared with speed, dispatch compared with compute."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxmeter import Answer, Caching, Cost, Figure, Peer, Published, Skip, itemsize, levels, workload

LARGEST_ENTRY = 8
"""Bound of the entries of integer matrices: their products stay far inside int32."""


def matrices(key, *, n, dtype):
    """Return two standard normal matrices, shapes (n, n)."""
    left, right = jax.random.split(key)
    return jax.random.normal(left, (n, n), dtype), jax.random.normal(right, (n, n), dtype)


def integer_matrices(key, *, n):
    """Return two int32 matrices with entries from -8 to 7, shapes (n, n)."""
    left, right = jax.random.split(key)
    return tuple(jax.random.randint(half, (n, n), -LARGEST_ENTRY, LARGEST_ENTRY, "int32") for half in (left, right))


def numpy_where_it_is_the_same(dtype, precision, backend):
    """Return a Skip where JAX computes another product than NumPy, which has only full float32."""
    if dtype == "bfloat16":
        return Skip("NumPy has no native bfloat16 arithmetic")
    if backend != "cpu" and precision != "highest":
        return Skip("NumPy has one precision; it is compared with 'highest'")
    return None


@workload(
    inputs=matrices,
    params={
        "n": levels(
            quick=512, default=(128, 2048), full=(1024, 4096), by_device={"gpu": (4096, 8192), "tpu": (4096, 8192)}
        ),
        "dtype": levels(quick="float32", full="bfloat16", by_device={"gpu": "bfloat16", "tpu": "bfloat16"}),
        # On a CPU both precisions are the same float32 product.
        "precision": levels(quick="default", full="highest", by_device={"gpu": "highest", "tpu": "highest"}),
    },
    reference=np.matmul,
    cost=lambda *, n, dtype: Cost(flops=2 * n**3, bytes=3 * n**2 * itemsize(dtype)),
    peers={"numpy": Peer(np.matmul, limit=numpy_where_it_is_the_same)},
    compiles=1,
    caching=Caching(
        new_shape=lambda *, n: {"n": n + 1},
        new_static=lambda *, precision: {"precision": "highest" if precision == "default" else "default"},
    ),
    answer=Answer(
        "How fast are large products?",
        "matmul:jit",
        metric="achieved_flops",
        at={"n": 2048, "dtype": "float32", "precision": "default"},
    ),
)
def matmul(a, b, *, precision):
    """Matrix product, (n, n) @ (n, n) -> (n, n). Source: Dongarra et al., Level 3 BLAS, 1990; JAX's `lax.Precision`."""
    return jnp.matmul(a, b, precision=precision)


def numpy_of_small_integers(n):
    """Return a Skip for large products, because NumPy has no library kernel for integers."""
    return Skip("NumPy takes a second for each call; measured only up to n = 256") if n > 256 else None


@workload(
    inputs=integer_matrices,
    params={"n": levels(default=1000, full=256)},
    reference=np.matmul,
    cost=lambda *, n: Cost(flops=2 * n**3, bytes=3 * n**2 * itemsize("int32")),
    peers={"numpy": Peer(np.matmul, limit=numpy_of_small_integers)},
    modes=("eager", "jit"),
    compiles=1,
    caching=Caching(new_shape=lambda *, n: {"n": n + 1}),
    published=(
        Published(
            source="Sapunov, JAX in Action (MEAP v3, 2022), listings 3.18 and 3.19",
            device="a GPU of Colab, unnamed",
            backend="gpu",
            timed="single calls: until the result is ready, and until the call returns; "
            "until the result was ready, 150 ms on a CPU and 4.19 ms on a TPU v2",
            figure=Figure("matmul_int32:eager", 4.33e-3),
            against=Figure("matmul_int32:eager", 0.770e-3, metric="return_s"),
            differs="The source times one call; jaxmeter reports the median of many calls.",
            at={"n": 1000},
        ),
    ),
    level="default",
)
def matmul_int32(a, b):
    """Matrix product of 32-bit integers, (n, n) @ (n, n) -> (n, n): no library kernel on a CPU or GPU.

    Source: Sapunov, JAX in Action (MEAP v3, 2022), listings 3.18 and 3.19.
    """
    return jnp.matmul(a, b)
