"""Fusion and gradients of small functions: what does one program save compared with one operation at a time?"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxmeter import Answer, Caching, Cost, Figure, Published, Skip, itemsize, levels, workload

FLOAT_BYTES = itemsize("float32")

OPERATIONS = 6
"""Operations of f(x) per element: x·x, which counts once, x·xᵀ, three sums, and the product of both halves."""

MEAN_SQUARE_OPERATIONS = 4
"""Operations per element: add 2, square, add 3, and add to the sum."""

figure_1_3 = partial(
    Published,
    source="Sapunov, JAX in Action (MEAP v3, 2022), figure 1.3",
    timed="wall time, best of 5",
    at={"n": 3_000},
)


def matrix(key, *, n):
    """Return a standard normal matrix, shape (n, n) float32."""
    return jax.random.normal(key, (n, n))


def vector(key, *, n):
    """Return a standard normal vector, shape (n,) float32."""
    return jax.random.normal(key, (n,))


def f_in_numpy(x):
    """(x + x·x + 3) · (x·x + x·xᵀ) with NumPy, element by element, (n, n) -> (n, n)."""
    return (x + x * x + 3) * (x * x + x * x.T)


@workload(
    inputs=matrix,
    params={"n": levels(quick=300, default=3_000, full=10_000, by_device={"gpu": 10_000})},
    reference=f_in_numpy,
    cost=lambda *, n: Cost(flops=OPERATIONS * n**2, bytes=2 * n**2 * FLOAT_BYTES),
    peers={"numpy": f_in_numpy},
    modes=("eager", "jit"),
    compiles=1,
    caching=Caching(new_shape=lambda *, n: {"n": n + 1}),
    published=(
        figure_1_3(
            device="processor of a machine with a Tesla P100",
            backend="cpu",
            figure=Figure("fusion:eager", 59.5e-3),
            against=Figure("fusion:jit", 10.5e-3),
        ),
        figure_1_3(
            device="processor of a machine with a Tesla P100",
            backend="cpu",
            figure=Figure("numpy:native", 49.8e-3),
            against=Figure("fusion:jit", 10.5e-3),
        ),
        figure_1_3(
            device="Tesla P100",
            backend="gpu",
            figure=Figure("fusion:eager", 1.87e-3),
            against=Figure("fusion:jit", 0.649e-3),
        ),
        figure_1_3(
            device="Tesla P100, NumPy on that machine's processor",
            backend="gpu",
            figure=Figure("numpy:native", 49.8e-3),
            against=Figure("fusion:jit", 0.649e-3),
            at={"n": 3_000, "backend": "gpu"},
        ),
    ),
    answer=Answer(
        "What does one fused program save?",
        "fusion:jit",
        against="fusion:eager",
        at={"n": 3_000},
        rank=12,
    ),
    level="default",
)
def fusion(x):
    """(x + x·x + 3) · (x·x + x·xᵀ), with element-wise products, (n, n) -> (n, n). Source: JAX in Action, figure 1.3."""
    return (x + x * x + 3) * (x * x + x * x.T)


def not_fused_here(n, backend):
    """Return a Skip on other backends, and for small matrices, which stay in the processor's caches, fused or not."""
    if backend != "cpu":
        return Skip("XLA's fusion pass has this name on a CPU only")
    return Skip("measured at n = 3,000") if n < 3_000 else None


@fusion.implementation(modes=("jit",), limit=not_fused_here, compiler_options={"xla_disable_hlo_passes": "fusion"})
def not_fused(x):
    """One program in which each operation is a separate loop: one dispatch, and each result goes through memory."""
    return (x + x * x + 3) * (x * x + x * x.T)


def mean_square_of(x):
    """Return the mean of (x + 2)² + 3, (n,) -> ()."""
    return jnp.mean((x + 2) ** 2 + 3)


def mean_square_in_numpy(x):
    """Return the mean of (x + 2)² + 3 with NumPy."""
    return np.mean((x + 2) ** 2 + 3)


@workload(
    inputs=vector,
    params={"n": 1_000},
    reference=mean_square_in_numpy,
    cost=lambda *, n: Cost(flops=MEAN_SQUARE_OPERATIONS * n, bytes=n * FLOAT_BYTES),
    modes=("eager", "jit"),
    compiles=1,
    caching=Caching(new_shape=lambda *, n: {"n": n + 1}),
    published=(
        Published(
            source='"Hello JAX" tutorial notes, 2025',
            device="a GPU, unnamed",
            backend="gpu",
            timed="wall time of a call until its result is ready, mean ± standard deviation",
            figure=Figure("mean_square:eager", 598e-6, 104e-6),
            against=Figure("mean_square:jit", 19.5e-6, 52.8e-9),
            differs="the text next to these figures says 10 to 15 times faster; the figures give 31 times",
            at={"n": 1_000},
        ),
    ),
    level="default",
)
def mean_square(x):
    """Mean of (x + 2)² + 3, (n,) -> (). Source: "Hello JAX" tutorial notes, 2025."""
    return mean_square_of(x)


value_program = jax.jit(mean_square_of)
gradient_program = jax.jit(jax.grad(mean_square_of))


def value_and_gradient_in_numpy(x):
    """Return the value, and the gradient 2 (x + 2) / n: (n,) -> (), (n,)."""
    return mean_square_in_numpy(x), 2 * (x + 2) / x.size


@workload(
    inputs=vector,
    params={"n": 1_000},
    reference=value_and_gradient_in_numpy,
    # In addition to the value, one scaling of x + 2.
    cost=lambda *, n: Cost(flops=(MEAN_SQUARE_OPERATIONS + 1) * n, bytes=2 * n * FLOAT_BYTES),
    modes=("eager", "jit"),
    implementation="value_and_grad",
    baseline="value_and_grad:jit",
    compiles=1,
    caching=Caching(new_shape=lambda *, n: {"n": n + 1}),
    level="default",
)
def mean_square_gradient(x):
    """Value and gradient of the mean of (x + 2)² + 3, (n,) -> (), (n,), by `jax.value_and_grad`.

    Source: "Hello JAX" tutorial notes, 2025.
    """
    return jax.value_and_grad(mean_square_of)(x)


@mean_square_gradient.implementation
def two_calls(x):
    """The function, then its `grad`, which computes it again; within one program the compiler merges both."""
    return mean_square_of(x), jax.grad(mean_square_of)(x)


@mean_square_gradient.implementation(modes=("mixed",), compiles=2)
def two_programs(x):
    """The function and its `grad`, jitted separately: two dispatches, and x is read twice."""
    return value_program(x), gradient_program(x)


@mean_square_gradient.implementation(name="grad")
def grad_with_value(x):
    """`jax.grad`, with the value as its auxiliary output."""

    def with_value(x):
        value = mean_square_of(x)
        return value, value

    gradient, value = jax.grad(with_value, has_aux=True)(x)
    return value, gradient
