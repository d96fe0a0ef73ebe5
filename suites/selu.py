"""SELU: element-wise and bound by memory traffic; what fusing its operations into one loop is worth."""

import jax
import jax.numpy as jnp
import numpy as np

from harness import Cost, Peer, Skip, itemsize, sizes, workload

ALPHA = 1.6732632423543772
SCALE = 1.0507009873554805
"""Klambauer et al., Self-Normalizing Neural Networks, 2017, equation 14 and section "Derivation"."""

OPERATIONS = 5
"""Per element: compare, exp, subtract, and two products (select is not arithmetic)."""


def activations(key, *, n, dtype):
    """Standard normal, shape (n,)."""
    return jax.random.normal(key, (n,), dtype)


def selu_in_numpy(x):
    """The definition with NumPy, (n,) -> (n,)."""
    return SCALE * np.where(x > 0, x, ALPHA * (np.exp(x) - 1))


def has_no_bfloat16(dtype):
    """NumPy computes bfloat16 through an extension type, one element at a time."""
    return Skip("NumPy has no bfloat16 arithmetic of its own") if dtype == "bfloat16" else None


@workload(
    inputs=activations,
    params={
        "n": sizes(quick=10_000, default=(1_000_000, 10_000_000), full=100_000_000, gpu=100_000_000),
        "dtype": ("float32", "bfloat16"),
    },
    reference=selu_in_numpy,
    cost=lambda *, n, dtype: Cost(flops=OPERATIONS * n, bytes=2 * n * itemsize(dtype)),
    peers={"numpy": Peer(selu_in_numpy, limit=has_no_bfloat16)},
    compiles=1,
    new_shape=lambda *, n: {"n": n + 1},
)
def selu(x):
    """Scaled exponential linear unit, (n,) -> (n,). Source: Klambauer et al. 2017, equation 2."""
    return SCALE * jnp.where(x > 0, x, ALPHA * (jnp.exp(x) - 1))
