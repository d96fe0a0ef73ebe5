"""Dispatch: cost of a call before any arithmetic, one by one, queued and chained, and the size that hides it."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxmeter import Answer, Caching, Cost, Items, itemsize, levels, workload

SMALL = 100
"""Elements of an array whose arithmetic takes less time than its call. XLA on a CPU hands 1000 elements to a thread."""


def values(key, *, n):
    """Return a standard normal array, shape (n,) float32."""
    return jax.random.normal(key, (n,))


def positive_parts(x, *, queued):
    """Return the results of all calls, which are equal: the positive part of a positive part is itself."""
    return np.stack([np.maximum(x, 0)] * queued)


@jax.jit
def positive_part(x):
    """Return the positive part, (n,) -> (n,), by a small program."""
    return jnp.maximum(x, 0)


@workload(
    inputs=values,
    params={"queued": levels(quick=100, full=(1, 1_000)), "n": SMALL},
    reference=positive_parts,
    compare=lambda result: np.vstack(jax.tree.leaves(result)),
    modes=("mixed",),
    implementation="independent",
    compiles=1,
    caching=Caching(new_shape=lambda *, n: {"n": n + 1}, new_static=lambda *, queued: {"queued": queued + 1}),
    items=Items("operations", lambda *, queued: queued),
    answer=Answer(
        "How many small operations per second?", "one_program:jit", against="independent:mixed", metric="items_per_s"
    ),
    level="default",
)
def queued_calls(x, *, queued):
    """Small independent jitted calls, issued in a row, (n,) -> queued x (n,); then one wait.

    Source: JAX's documentation, "Asynchronous dispatch".
    """
    return [positive_part(x) for _ in range(queued)]


@queued_calls.implementation
def chained(x, *, queued):
    """The same number of calls, each on the previous result, (n,) -> queued x (n,); then one wait."""
    results = []
    for _ in range(queued):
        x = positive_part(x)
        results.append(x)
    return results


@queued_calls.implementation
def waited_for(x, *, queued):
    """The same calls, with a wait for each before the next is issued, (n,) -> queued x (n,)."""
    return [positive_part(x).block_until_ready() for _ in range(queued)]


@queued_calls.implementation
def not_jitted(x, *, queued):
    """The same operation without `jax.jit` around it, (n,) -> queued x (n,): `jnp.maximum` looks up its program."""
    return [jnp.maximum(x, 0) for _ in range(queued)]


@queued_calls.implementation(modes=("jit",))
def one_program(x, *, queued):
    """One call of a program that contains the loop (`lax.scan`), (n,) -> (queued, n): one dispatch."""

    def step(x, _):
        x = jnp.maximum(x, 0)
        return x, x

    return jax.lax.scan(step, x, length=queued)[1]


@workload(
    inputs=values,
    params={
        "n": levels(
            quick=100,
            default=(100_000, 1_000_000),
            full=(10_000, 100_000_000),
            by_device={"gpu": 100_000_000, "tpu": 100_000_000},
        ),
        "operation": levels(quick="square", full="tanh"),
    },
    reference=lambda x, *, operation: {"square": np.square, "tanh": np.tanh}[operation](x),
    cost=lambda *, n: Cost(flops=n, bytes=2 * n * itemsize("float32")),
    modes=("jit",),
    compiles=1,
    caching=Caching(new_shape=lambda *, n: {"n": n + 1}),
    queued=16,
    level="default",
)
def hidden_return(x, *, operation):
    """Square or tanh, (n,) -> (n,): the size that hides dispatch, because the call returns before the work ends.

    Dispatch is hidden from the n on where `return_s` is a small part of `execution_s`. `pipelined_s` compared with
    `execution_s` shows what this gains in a loop that waits only at its end. On a CPU the program matters too: XLA runs
    what it counts as fewer than 1000 floating-point operations inside the call. It counts tanh (the hyperbolic tangent)
    as none for any n, so `return_s` of tanh is all of its `execution_s`.
    Source: JAX's documentation, "Asynchronous dispatch"; XLA, `pjrt/cpu/cpu_client.cc`, `cheap_computation_`.
    """
    return {"square": jnp.square, "tanh": jnp.tanh}[operation](x)
