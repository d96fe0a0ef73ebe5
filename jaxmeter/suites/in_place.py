"""In place: is an update of a few entries of an immutable array a copy? Eager, jitted and donated, and NumPy."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxmeter import Answer, Caching, Figure, Published, State, levels, workload

LENGTHS = levels(
    quick=10_000, default=1_000_000, full=(10_000_000, 100_000_000), by_device={"gpu": 100_000_000, "tpu": 100_000_000}
)

IN_PLACE = Published(
    source="JAX's documentation of `jax.numpy.ndarray.at`, jax 0.10",
    device="any",
    timed='"inside a jit compiled function, expressions like x = x.at[idx].set(y) are guaranteed to be applied '
    'in-place": the ratio of jit to jit with donated x is then 1',
    figure=Figure("at_set:jit", 1.0),
    against=Figure("donated:jit", 1.0),
    differs="here x comes from outside the function, and remains the caller's unless it is donated",
    at={"n": 1_000_000, "updates": 1},
)


def distinct(key, *, n, updates):
    """Return an array (n,), one index in each of `updates` equal parts of it, and values (updates,); float32."""
    array, places, new = jax.random.split(key, 3)
    part = n // updates
    indices = part * jnp.arange(updates) + jax.random.randint(places, (updates,), 0, part)
    return jax.random.normal(array, (n,)), indices, jax.random.normal(new, (updates,))


def repeated(key, *, n, updates):
    """Return an array (n,), indices (updates,) whose second half repeats the first, and values (updates,); float32."""
    array, places, new = jax.random.split(key, 3)
    half = jax.random.randint(places, ((updates + 1) // 2,), 0, n)
    return jax.random.normal(array, (n,)), jnp.tile(half, 2)[:updates], jax.random.normal(new, (updates,))


def set_in_numpy(x, indices, values):
    """NumPy's assignment, (n,), (updates,), (updates,) -> (n,): x is changed in place."""
    x[indices] = values
    return x


def add_in_numpy(x, indices, values):
    """NumPy's `add.at`, (n,), (updates,), (updates,) -> (n,), in place; `x[i] += v` would add only once."""
    np.add.at(x, indices, values)
    return x


@workload(
    inputs=distinct,
    params={"n": LENGTHS, "updates": levels(quick=1, full=1_000)},
    reference=lambda x, indices, values: set_in_numpy(x.copy(), indices, values),
    peers={"numpy": set_in_numpy},
    modes=("eager", "jit"),
    state=State(carry={"x": 0}),
    baseline="at_set:jit",
    compiles=1,
    caching=Caching(new_shape=lambda *, n: {"n": n + 1}),
    published=(IN_PLACE,),
    answer=Answer(
        "Is x.at[i].set(v) a copy?",
        "donated:jit",
        against="at_set:jit",
        at={"n": 1_000_000, "updates": 1},
    ),
)
def at_set(x, indices, values):
    """`x.at[indices].set(values)`, (n,), (updates,), (updates,) -> (n,): a new array, so n elements are copied.

    Source: JAX's documentation, `jax.numpy.ndarray.at`, and "Buffer donation" for `donated`.
    """
    return x.at[indices].set(values)


@at_set.implementation(name="donated", modes=("jit",), donate=("x",))
def donated_set(x, indices, values):
    """`x.at[indices].set(values)`, x donated, (n,), (updates,), (updates,) -> (n,): the result reuses its memory."""
    return x.at[indices].set(values)


@workload(
    inputs=repeated,
    params={
        "n": levels(default=(10_000, 1_000_000), full=(10_000_000, 100_000_000)),
        "updates": levels(quick=1_000, full=1),
    },
    reference=lambda x, indices, values: add_in_numpy(x.copy(), indices, values),
    peers={"numpy": add_in_numpy},
    modes=("eager", "jit"),
    state=State(carry={"x": 0}),
    baseline="at_add:jit",
    compiles=1,
    caching=Caching(new_shape=lambda *, n: {"n": n + 1}),
    level="full",
)
def at_add(x, indices, values):
    """`x.at[indices].add(values)`, (n,), (updates,), (updates,) -> (n,): a copy in which repeated indices add up.

    Source: JAX's documentation, `jax.numpy.ndarray.at`, and "Buffer donation" for `donated`.
    """
    return x.at[indices].add(values)


@at_add.implementation(name="donated", modes=("jit",), donate=("x",))
def donated_add(x, indices, values):
    """`x.at[indices].add(values)`, x donated, (n,), (updates,), (updates,) -> (n,): the result reuses its memory."""
    return x.at[indices].add(values)
