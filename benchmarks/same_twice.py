"""A suite for benchmarks.false_alarms: one function twice, and once with 5 % more work."""

import jax
import jax.numpy as jnp

from harness import no_reference, workload

STEPS = 20
ELEMENTWISE, PRODUCT = 100_000, 256


def values(key, *, number):
    """Even numbers: a vector for an element-wise step; odd ones: a matrix for a product."""
    shape = (ELEMENTWISE,) if number % 2 == 0 else (PRODUCT, PRODUCT)
    return jax.random.normal(key, shape)


def repeat(x, steps):
    """A loop of `steps` equal steps: SELU of a vector, or a product of the matrix with itself."""

    def step(_, y):
        return jax.nn.selu(y) if y.ndim == 1 else jnp.tanh(y @ x)

    return jax.lax.fori_loop(0, steps, step, x)


@workload(
    inputs=values,
    params={"number": tuple(range(1000))},
    reference=no_reference("the third implementation does more steps on purpose"),
    modes=("jit",),
    implementation="one",
)
def twice(x):
    """The loop, vector or matrix in and out."""
    return repeat(x, STEPS)


@twice.implementation
def same(x):
    """The same once more."""
    return repeat(x, STEPS)


@twice.implementation
def slower(x):
    """One step in twenty more."""
    return repeat(x, STEPS + 1)
