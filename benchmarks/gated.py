"""What `benchmarks.gate` measures: programs that change without taking longer, and some that take 3 or 5 % longer.

The environment says which version they are of: in the second one every program is another, as its constant is, and the
slower ones do more steps; of the version `equal` none does.
"""

import os

import jax
import jax.numpy as jnp

from jaxmeter import no_reference, workload

CASES = 60
STEPS = 100
MORE = {"same": 0, "three": 3, "five": 5}
"""Further steps of the second version, by kind."""

VERSION = os.environ.get("BENCHMARK_VERSION")
FACTOR = 0.5 if VERSION in ("2", "equal") else 0.25


def kind_of(number):
    """Two of ten take 5 % longer in the second version, two 3 %."""
    return {0: "five", 1: "five", 2: "three", 3: "three"}.get(number % 10, "same")


def square(key, *, number):
    """A matrix, (n, n), of one of several sizes."""
    size = 64 + 16 * (number % 4)
    return (jax.random.normal(jax.random.fold_in(key, number), (size, size)) / size,)


@workload(
    inputs=square,
    params={"number": tuple(range(CASES))},
    reference=no_reference("equal programs are held against each other"),
    modes=("jit",),
)
def chain(x, *, number):
    """A chain of products, (n, n) -> (n, n)."""
    steps = STEPS + (MORE[kind_of(number)] if VERSION == "2" else 0)
    return FACTOR * jax.lax.fori_loop(0, steps, lambda _, y: jnp.tanh(y @ x) + x, x)
