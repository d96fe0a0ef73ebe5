"""SELU: element-wise and memory-bound; the speedup from fusing its operations into one loop."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxmeter import Answer, Caching, Cost, Figure, Peer, Published, Skip, itemsize, levels, workload

ALPHA = 1.6732632423543772
SCALE = 1.0507009873554805
"""Klambauer et al., Self-Normalizing Neural Networks, 2017, equation 14 and section "Derivation"."""

PUBLISHED_AT = {"n": 1_000_000, "dtype": "float32"}
"""Size of the published figures."""

OPERATIONS = 5
"""Operations per element: compare, exp, subtract, and two products (select is not arithmetic)."""


def activations(key, *, n, dtype):
    """Return standard normal numbers, shape (n,)."""
    return jax.random.normal(key, (n,), dtype)


def selu_in_numpy(x):
    """SELU by its definition in NumPy, (n,) -> (n,)."""
    return SCALE * np.where(x > 0, x, ALPHA * (np.exp(x) - 1))


def has_no_bfloat16(dtype):
    """Return a Skip for bfloat16, which NumPy computes through an extension type, one element at a time."""
    return Skip("NumPy has no native bfloat16 arithmetic") if dtype == "bfloat16" else None


@workload(
    inputs=activations,
    params={
        "n": levels(quick=10_000, default=1_000_000, full=(10_000_000, 100_000_000), by_device={"gpu": 100_000_000}),
        "dtype": levels(quick="float32", full="bfloat16", by_device={"gpu": "bfloat16", "tpu": "bfloat16"}),
    },
    reference=selu_in_numpy,
    cost=lambda *, n, dtype: Cost(flops=OPERATIONS * n, bytes=2 * n * itemsize(dtype)),
    peers={"numpy": Peer(selu_in_numpy, limit=has_no_bfloat16)},
    compiles=1,
    caching=Caching(new_shape=lambda *, n: {"n": n + 1}),
    published=(
        Published(
            source="Sapunov, JAX in Action (MEAP v3, 2022), listing 5.2",
            device="A100-SXM4-40GB",
            backend="gpu",
            timed="one call; the slowest jitted call took 29.85 times as long as the fastest",
            figure=Figure("selu:eager", 786e-6, 31.8e-6),
            against=Figure("selu:jit", 132e-6, 260e-6),
            at=PUBLISHED_AT,
        ),
        Published(
            source="Sapunov, JAX in Action (MEAP v3, 2022), listing 5.3 (jit as decorator), eager from listing 5.2",
            device="A100-SXM4-40GB",
            backend="gpu",
            timed="one call",
            figure=Figure("selu:eager", 786e-6, 31.8e-6),
            against=Figure("selu:jit", 146e-6, 250e-6),
            at=PUBLISHED_AT,
        ),
        Published(
            source="a notebook on jax.jit, JAX 0.4 era, its first cells",
            device="a CUDA GPU, unnamed",
            backend="gpu",
            timed="one call, without warm-up",
            figure=Figure("selu:eager", 302e-6, 523e-6),
            against=Figure("selu:jit", 61.3e-6, 119e-6),
            differs="The source times the first calls too; jaxmeter does not time calls that compile.",
            at=PUBLISHED_AT,
        ),
        Published(
            source="a notebook on jax.jit, JAX 0.4 era, its later cells",
            device="a CUDA GPU, unnamed",
            backend="gpu",
            timed="one call, after one warm-up call",
            figure=Figure("selu:eager", 121e-6, 19e-6),
            against=Figure("selu:jit", 13.4e-6, 1.52e-6),
            at=PUBLISHED_AT,
        ),
    ),
    answer=Answer(
        "What does fusing save?",
        "selu:jit",
        against="selu:eager",
        at={"n": 1_000_000, "dtype": "float32"},
    ),
)
def selu(x):
    """Scaled exponential linear unit, (n,) -> (n,). Source: Klambauer et al. 2017, equation 2."""
    return SCALE * jnp.where(x > 0, x, ALPHA * (jnp.exp(x) - 1))
