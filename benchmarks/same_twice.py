"""A suite for benchmarks.false_alarms: one function twice, and once on 5 % more rows."""

import jax
import jax.numpy as jnp

from harness import no_reference, workload

STEPS = 4
ROWS, MORE_ROWS = 800, 840
COLUMNS = 256


def matrices(key, *, number):
    """Matrices of 800 and of 5 % more rows, and a square one that odd numbers multiply them with."""
    rows = jax.random.normal(key, (MORE_ROWS, COLUMNS))
    return rows[:ROWS], rows, jax.random.normal(key, (COLUMNS, COLUMNS)) / COLUMNS


def repeat(x, square, number):
    """Equal steps, shape kept: element-wise for even numbers, a product for odd ones."""

    def step(_, y):
        return jnp.sin(jnp.exp(jnp.tanh(y))) + x if number % 2 == 0 else y @ square + x

    return jax.lax.fori_loop(0, STEPS, step, x)


@workload(
    inputs=matrices,
    params={"number": tuple(range(1000))},
    reference=no_reference("the third implementation works on more rows on purpose"),
    modes=("jit",),
    implementation="one",
)
def twice(x, longer, square, *, number):
    """The loop over 800 rows."""
    return repeat(x, square, number)


@twice.implementation
def same(x, longer, square, *, number):
    """The same once more."""
    return repeat(x, square, number)


@twice.implementation
def slower(x, longer, square, *, number):
    """The loop over 840 rows."""
    return repeat(longer, square, number)
