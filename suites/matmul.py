"""Matrix product: bound by arithmetic once it is large; precision against speed, dispatch against compute."""

import jax
import jax.numpy as jnp
import numpy as np

from harness import Cost, Peer, Skip, itemsize, sizes, workload

LARGEST_ENTRY = 8
"""Of the integer matrices: their products stay far inside int32."""


def matrices(key, *, n, dtype):
    """Two standard normal matrices, shapes (n, n)."""
    left, right = jax.random.split(key)
    return jax.random.normal(left, (n, n), dtype), jax.random.normal(right, (n, n), dtype)


def integer_matrices(key, *, n):
    """Two int32 matrices with entries from -8 to 7, shapes (n, n)."""
    left, right = jax.random.split(key)
    return tuple(jax.random.randint(half, (n, n), -LARGEST_ENTRY, LARGEST_ENTRY, "int32") for half in (left, right))


def numpy_where_it_is_the_same(dtype, precision):
    """NumPy's float32 product is the processor's; it knows no other precision."""
    if dtype == "bfloat16":
        return Skip("NumPy has no bfloat16 arithmetic of its own")
    if precision != "highest":
        return Skip("NumPy has one precision; it is measured beside 'highest'")
    return None


@workload(
    inputs=matrices,
    params={
        "n": sizes(quick=512, default=(128, 256, 1024, 2048), full=4096, gpu=(4096, 8192), tpu=(4096, 8192)),
        "dtype": ("float32", "bfloat16"),
        "precision": ("default", "highest"),
    },
    reference=np.matmul,
    cost=lambda *, n, dtype: Cost(flops=2 * n**3, bytes=3 * n**2 * itemsize(dtype)),
    peers={"numpy": Peer(np.matmul, limit=numpy_where_it_is_the_same)},
    compiles=1,
    new_shape=lambda *, n: {"n": n + 1},
    new_static=lambda *, precision: {"precision": "highest" if precision == "default" else "default"},
)
def matmul(a, b, *, precision):
    """Matrix product, (n, n) @ (n, n) -> (n, n)."""
    return jnp.matmul(a, b, precision=precision)


@workload(
    inputs=integer_matrices,
    params={"n": sizes(quick=256, default=1000)},
    reference=np.matmul,
    cost=lambda *, n: Cost(flops=2 * n**3, bytes=3 * n**2 * itemsize("int32")),
    peers={"numpy": np.matmul},
    compiles=1,
    new_shape=lambda *, n: {"n": n + 1},
)
def matmul_int32(a, b):
    """Matrix product of 32-bit integers, (n, n) @ (n, n) -> (n, n): no library kernel, and none on a GPU."""
    return jnp.matmul(a, b)
