"""A suite for benchmarks.false_alarms: one function twice, and beside it one that works more, or on fewer cores."""

import jax
import jax.numpy as jnp

from jaxmeter import no_reference, workload

STEPS = 4
ROWS, MORE_ROWS = 800, 840
COLUMNS = 256

SERIAL_STEPS = 5000
"""Of one row, too little for XLA to share among threads; so many take about half a millisecond, as the product does."""

NUMBERS = tuple(range(1000))


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
    params={"number": NUMBERS},
    reference=no_reference("the third implementation works on more rows on purpose", comparable=False),
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


def multiply(x, square):
    """A product, which XLA shares among threads."""
    return repeat(x, square, 1)


def iterate(x, square):
    """A loop over one row, which runs on one thread."""
    return jax.lax.fori_loop(0, SERIAL_STEPS, lambda _, y: jnp.tanh(y) + x[0], x[0])


@workload(
    inputs=lambda key, *, number: matrices(key, number=number)[::2],
    params={"number": NUMBERS},
    reference=no_reference("the third implementation computes something else on purpose", comparable=False),
    modes=("jit",),
    implementation="one",
)
def unequal(x, square, *, number):
    """Of even numbers the product, of odd ones the loop over one row."""
    return (iterate if number % 2 else multiply)(x, square)


@unequal.implementation(name="same")
def same_beside_unequal(x, square, *, number):
    """The same once more."""
    return (iterate if number % 2 else multiply)(x, square)


@unequal.implementation
def other(x, square, *, number):
    """The one of the two that its neighbours are not."""
    return (multiply if number % 2 else iterate)(x, square)
