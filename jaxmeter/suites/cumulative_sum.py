"""Cumulative sum: an unrolled loop compared with loops that the compiler sees, by compile and execution time."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxmeter import Answer, Caching, Cost, Figure, Published, Skip, itemsize, levels, workload

LONGEST_LIST_LOOP = 1_000
LONGEST_STACKED_LOOP = 200
"""The compile budget of this suite: at most 10 s per program on two cores. Up to n = 100, the compile time of both
loops is about linear in n. Beyond, the stacked loop's grows with about n ** 2 (benchmarks/README.md)."""


LONGEST_TRACED = 10_000
"""The listings' n. Its 30 000 equations take seconds to trace and minutes to compile."""

LISTINGS = {"source": "Sapunov, JAX in Action, MEAP v3, 2022, listings 5.21 and 5.22", "device": "not stated"}


def values(key, *, n):
    """Return a standard normal array, shape (n,) float32."""
    return jax.random.normal(key, (n,))


def list_loop_within_budget(n):
    """Return a Skip where the program takes longer than the compile budget; the listings' own n is still traced."""
    if n > LONGEST_LIST_LOOP:
        reason = f"compile budget: unrolled only up to n = {LONGEST_LIST_LOOP}"
        return Skip(reason, traced=n <= LONGEST_TRACED)
    return None


def stacked_loop_within_budget(n):
    """Return a Skip where the unrolled program takes longer than the compile budget."""
    if n > LONGEST_STACKED_LOOP:
        return Skip(f"compile budget: unrolled and stacked only up to n = {LONGEST_STACKED_LOOP}")
    return None


@workload(
    inputs=values,
    params={"n": levels(quick=100, default=(1_000, 10_000), full=(10, 200, 100_000, 1_000_000))},
    reference=np.cumsum,
    cost=lambda *, n: Cost(flops=n - 1, bytes=2 * n * itemsize("float32")),
    peers={"numpy": np.cumsum},
    modes=("jit",),
    implementation="jnp.cumsum",
    baseline="scan:jit",
    compiles=1,
    caching=Caching(new_shape=lambda *, n: {"n": n + 1}),
    published=(
        Published(
            **LISTINGS,
            timed="first call, compilation included, n = 10 000, a loop that returns a list; wall time of one call",
            figure=Figure("loop_list:jit", 143.0, metric="first_result_s"),
            against=Figure("scan:jit", 0.213, metric="first_result_s"),
            at={"n": LONGEST_LIST_LOOP},
            differs="n = 1 000 here, a tenth of theirs, because a longer unrolled loop takes minutes to compile; the "
            "listing's scan begins at 1.0, so its sums are one too high; device, JAX of 2022",
            undecided="the ratio grows with n, and our n is a tenth of theirs",
        ),
        Published(
            **LISTINGS,
            timed="equations of the jaxpr, n = 10 000",
            figure=Figure("loop_list:jit", 30_000, metric="jaxpr_equations"),
            against=Figure("scan:jit", 1, metric="jaxpr_equations"),
            at={"n": LONGEST_TRACED},
        ),
    ),
    answer=Answer(
        "Unrolled loop or lax.scan?",
        "scan:jit",
        against="loop_list:jit",
        metric="compile_total_s",
        at={"n": 1_000},
        rank=11,
    ),
)
def cumulative_sum(x):
    """`jnp.cumsum`, (n,) -> (n,). Source: Sapunov, JAX in Action, 2022, section 5.3 (its loop against its scan)."""
    return jnp.cumsum(x)


@cumulative_sum.implementation
def scan(x):
    """`lax.scan` with the running sum as carry, (n,) -> (n,): one equation for any n."""

    def step(total, value):
        total = total + value
        return total, total

    return jax.lax.scan(step, jnp.zeros((), x.dtype), x)[1]


@cumulative_sum.implementation
def fori_loop(x):
    """`lax.fori_loop` that writes into the result, (n,) -> (n,)."""

    def step(i, sums):
        return sums.at[i].add(sums[i - 1])

    return jax.lax.fori_loop(1, x.shape[0], step, x)


@cumulative_sum.implementation
def associative_scan(x):
    """`lax.associative_scan`, (n,) -> (n,): work in log(n) parallel steps."""
    return jax.lax.associative_scan(jnp.add, x)


@cumulative_sum.implementation(limit=list_loop_within_budget, traps=("unrolled",))
def loop_list(x):
    """Unrolled Python loop that returns a list, (n,) -> n scalars."""
    total, sums = jnp.zeros((), x.dtype), []
    for i in range(x.shape[0]):
        total = total + x[i]
        sums.append(total)
    return sums


@cumulative_sum.implementation(limit=stacked_loop_within_budget, traps=("unrolled",))
def loop_stacked(x):
    """Unrolled Python loop that stacks its list, (n,) -> (n,): the form of the output decides the compile time."""
    return jnp.stack(loop_list(x))
