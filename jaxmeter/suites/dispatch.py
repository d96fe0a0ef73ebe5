"""Dispatch: what a call costs before any arithmetic; calls one by one, queued, chained, and how large hides it."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxmeter import Answer, Caching, Cost, itemsize, levels, workload

SMALL = 100
"""Elements of an array whose arithmetic takes less than its call; with 1000 XLA on a CPU would hand it to a thread."""


def values(key, *, n):
    """Standard normal, shape (n,) float32."""
    return jax.random.normal(key, (n,))


def positive_parts(x, *, queued):
    """What every call gives: the positive part of a positive part is itself."""
    return np.stack([np.maximum(x, 0)] * queued)


@jax.jit
def positive_part(x):
    """The small call, (n,) -> (n,)."""
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
    answer=Answer("What does a call itself cost?", "one_program:jit", against="independent:mixed"),
    level="default",
)
def queued_calls(x, *, queued):
    """Small jitted calls that know nothing of each other, issued in a row, (n,) -> queued x (n,); then one wait.

    Source: JAX's documentation, "Asynchronous dispatch".
    """
    return [positive_part(x) for _ in range(queued)]


@queued_calls.implementation
def chained(x, *, queued):
    """The same number of calls, each of what the one before gave, (n,) -> queued x (n,); then one wait."""
    results = []
    for _ in range(queued):
        x = positive_part(x)
        results.append(x)
    return results


@queued_calls.implementation
def waited_for(x, *, queued):
    """The same calls, each waited for before the next is issued, (n,) -> queued x (n,)."""
    return [positive_part(x).block_until_ready() for _ in range(queued)]


@queued_calls.implementation
def not_jitted(x, *, queued):
    """The same operation without `jax.jit` around it, (n,) -> queued x (n,): `jnp.maximum` finds its program itself."""
    return [jnp.maximum(x, 0) for _ in range(queued)]


@queued_calls.implementation(modes=("jit",))
def one_program(x, *, queued):
    """One call of a program that has the loop in it (`lax.scan`), (n,) -> (queued, n): dispatched once."""

    def step(x, _):
        x = jnp.maximum(x, 0)
        return x, x

    return jax.lax.scan(step, x, length=queued)[1]


@workload(
    inputs=values,
    params={
        "n": levels(
            quick=100,
            default=(10_000, 100_000, 1_000_000),
            full=100_000_000,
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
    """Square or tanh, (n,) -> (n,): how large hides its dispatch, the call returning before its end.

    Dispatch is hidden from the n on where `return_s` is a small part of `execution_s`; what that is worth to a loop
    that waits only at its end is `pipelined_s` beside `execution_s`. On a CPU the program decides, too: what XLA counts
    as fewer than 1000 floating-point operations runs inside the call, and tanh (the hyperbolic tangent) counts as none,
    whatever n: its `return_s` is all of its `execution_s`.
    Source: JAX's documentation, "Asynchronous dispatch"; XLA, `pjrt/cpu/cpu_client.cc`, `cheap_computation_`.
    """
    return {"square": jnp.square, "tanh": jnp.tanh}[operation](x)
