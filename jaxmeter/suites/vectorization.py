"""Vectorization and control flow: the cost of loops, batching and branches that the compiler sees."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxmeter import Answer, Caching, Cost, Skip, itemsize, levels, workload

FLOAT_BYTES = itemsize("float32")

EPSILON = 1e-6
"""Keeps the root away from 0. Source: Zhang & Sennrich, Root Mean Square Layer Normalization, 2019."""


def layer_and_examples(key, *, examples, features):
    """Return weights of variance 1 / features, (features, features), and normal examples, (examples, features)."""
    weights, xs = jax.random.split(key)
    return (
        jax.random.normal(weights, (features, features)) / features**0.5,
        jax.random.normal(xs, (examples, features)),
    )


def normalized_layer(weights, x):
    """Compute W (x / rms(x)) of one example, (features, features), (features,) -> (features,)."""
    return weights @ (x / jnp.sqrt(jnp.mean(x * x) + EPSILON))


layer_program = jax.jit(normalized_layer)


def normalized_layer_in_numpy(weights, xs):
    """Compute `normalized_layer` for all examples in NumPy."""
    return (xs / np.sqrt(np.mean(xs * xs, axis=1, keepdims=True) + EPSILON)) @ weights.T


LAX_MAP_BATCH = 64
"""Batch size of `lax.map`: large enough for a matrix product, small enough for a processor cache."""


@workload(
    inputs=layer_and_examples,
    params={"examples": levels(default=64, full=(256, 1_024)), "features": 64},
    reference=normalized_layer_in_numpy,
    # FLOPs: squares, their sum and quotients, then the product.
    cost=lambda *, examples, features: Cost(
        flops=examples * features * (2 * features + 3), bytes=(2 * examples + features) * features * FLOAT_BYTES
    ),
    modes=("eager", "jit"),
    implementation="vmap",
    baseline="vmap:jit",
    compiles=1,
    caching=Caching(new_shape=lambda *, examples: {"examples": examples + 1}),
    level="default",
    answer=Answer(
        "What does vmap save?",
        "vmap:jit",
        against="jitted_loop:mixed",
    ),
)
def per_example_function(weights, xs):
    """W (x / rms(x)) of each example, (n, n), (examples, n) -> (examples, n), by `vmap` of the function for one.

    Source: Zhang & Sennrich, Root Mean Square Layer Normalization, 2019, equation 4.
    """
    return jax.vmap(normalized_layer, in_axes=(None, 0))(weights, xs)


@per_example_function.implementation(modes=("jit",))
def hand_batched(weights, xs):
    """Function written for all examples at once, with explicit axes."""
    return (xs / jnp.sqrt(jnp.mean(xs * xs, axis=1, keepdims=True) + EPSILON)) @ weights.T


@per_example_function.implementation(modes=("eager",))
def loop(weights, xs):
    """Python loop over examples; the time includes unstacking the examples and stacking the results."""
    return jnp.stack([normalized_layer(weights, x) for x in xs])


@per_example_function.implementation(modes=("mixed",))
def jitted_loop(weights, xs):
    """Python loop over examples that calls one jitted function, with one dispatch for each example.

    The time includes unstacking the examples and stacking the results, neither of which is jitted here.
    """
    return jnp.stack([layer_program(weights, x) for x in xs])


@per_example_function.implementation(modes=("jit",))
def lax_map(weights, xs):
    """`lax.map`: a loop that the compiler sees, one example at a time."""
    return jax.lax.map(lambda x: normalized_layer(weights, x), xs)


@per_example_function.implementation(modes=("jit",))
def lax_map_in_batches(weights, xs):
    """`lax.map` with batch_size: a loop over batches, vectorized inside."""
    return jax.lax.map(lambda x: normalized_layer(weights, x), xs, batch_size=LAX_MAP_BATCH)


LONGEST_UNROLLED = 1_000
"""Largest number of additions in an unrolled program; each has three equations."""


def digits_and_count(key, *, length, first):
    """Return integers from 1 to 9 as float32, shape (length,), and the number of them to sum, an int32.

    Their sums are exact in any order, and a missing entry always changes the sum.
    """
    return jax.random.randint(key, (length,), 1, 10).astype("float32"), jnp.int32(first)


def sum_first_n_in_numpy(x, n):
    """Return the sum by its definition in NumPy, (length,), () -> ()."""
    return x[: int(n)].sum()


def few_enough_to_unroll(first):
    """Return a Skip for counts with an unrolled program that exceeds the compile budget."""
    return Skip(f"compile budget: unrolled only up to {LONGEST_UNROLLED}") if first > LONGEST_UNROLLED else None


@workload(
    inputs=digits_and_count,
    params={"length": 1_000_000, "first": levels(quick=100, full=10_000)},
    reference=sum_first_n_in_numpy,
    modes=("jit",),
    implementation="mask",
    compiles=1,
    caching=Caching(
        new_shape=lambda *, length: {"length": length + 1}, new_static=lambda *, first: {"first": first + 1}
    ),
    level="default",
)
def sum_first_n(x, n):
    """Sum of the first n elements, (length,), () -> (), by a mask: reads all elements, and one program serves any n.

    Source: JAX's documentation, "Control flow and logical operators with JIT".
    """
    return jnp.sum(jnp.where(jnp.arange(x.shape[0]) < n, x, 0))


@sum_first_n.implementation
def static_slice(x, n, *, first):
    """Slice by a static n: reads only n elements, and each n needs its own program."""
    return jnp.sum(x[:first])


@sum_first_n.implementation(limit=few_enough_to_unroll)
def unrolled(x, n, *, first):
    """Unrolled Python loop to a static n: one addition for each element, and each n needs its own program."""
    total = jnp.zeros((), x.dtype)
    for i in range(first):
        total = total + x[i]
    return total


@sum_first_n.implementation
def fori_loop(x, n):
    """`lax.fori_loop` to a dynamic n: reads only n elements, in sequence."""
    return jax.lax.fori_loop(0, n, lambda i, total: total + x[i], jnp.zeros((), x.dtype))


@sum_first_n.implementation(raises=IndexError)
def traced_slice(x, n):
    """Slice by a traced n: an error, because the shape of the result would depend on a value."""
    return jnp.sum(x[:n])


EXPENSIVE_STEPS = 4
"""Matrix products of the expensive branch: some milliseconds; the cheap branch takes some tens of microseconds."""


def cheap(x):
    """Return 2 x."""
    return 2 * x


def expensive(x):
    """Repeat y = tanh(y x), a matrix product, (n, n) -> (n, n)."""
    # Element-wise branches would fuse into one loop, and LLVM hoists a choice that is the same for all elements out of
    # this loop. Then the processor computes only one branch under `jnp.where` too (measured with jax 0.10.2).
    y = x
    for _ in range(EXPENSIVE_STEPS):
        y = jnp.tanh(y @ x)
    return y


def expensive_in_numpy(x):
    """Compute `expensive` in NumPy."""
    y = x
    for _ in range(EXPENSIVE_STEPS):
        y = np.tanh(y @ x)
    return y


def flops_of_branch(*, n, is_expensive):
    """Return the floating-point operations of one branch, without tanh."""
    return EXPENSIVE_STEPS * 2 * n**3 if is_expensive else n**2


def matrix_and_choice(key, *, n, taken):
    """Return normal numbers of variance 1 / n, shape (n, n), and whether the expensive branch is taken."""
    return jax.random.normal(key, (n, n)) / n**0.5, jnp.bool_(taken == "expensive")


def branch_in_numpy(x, is_expensive):
    """Compute the chosen branch in NumPy, (n, n), () -> (n, n)."""
    return expensive_in_numpy(x) if is_expensive else 2 * x


@workload(
    inputs=matrix_and_choice,
    params={"n": levels(quick=256, by_device={"gpu": 2_048}), "taken": levels(quick="cheap", full="expensive")},
    reference=branch_in_numpy,
    cost=lambda *, n, taken: Cost(
        flops=flops_of_branch(n=n, is_expensive=taken == "expensive"), bytes=2 * n**2 * FLOAT_BYTES
    ),
    modes=("jit",),
    implementation="cond",
    compiles=1,
    caching=Caching(new_shape=lambda *, n: {"n": n + 1}),
    level="default",
)
def branch(x, is_expensive):
    """One of two functions, chosen by a value of the data, (n, n), () -> (n, n), by `lax.cond`: one branch runs.

    Source: JAX's documentation, "Control flow and logical operators with JIT".
    """
    return jax.lax.cond(is_expensive, expensive, cheap, x)


@branch.implementation
def switch(x, is_expensive):
    """`lax.switch` by an index: one branch runs."""
    return jax.lax.switch(is_expensive.astype("int32"), (cheap, expensive), x)


@branch.implementation
def where(x, is_expensive):
    """`jnp.where`: both branches run, and one result is discarded."""
    return jnp.where(is_expensive, expensive(x), cheap(x))


@branch.implementation(modes=("eager",))
def python_if(x, is_expensive):
    """Python's `if` without jit: waits for the value, then runs one branch."""
    return expensive(x) if is_expensive else cheap(x)


@branch.implementation(name="traced_if", raises=jax.errors.TracerBoolConversionError)
def python_if_in_a_program(x, is_expensive):
    """Python's `if` on a traced value: an error, because the value is unknown during tracing."""
    return expensive(x) if is_expensive else cheap(x)


EXPENSIVE_EVERY = 8
"""One in EXPENSIVE_EVERY examples takes the expensive branch."""


def examples_and_choices(key, *, examples, n):
    """Return normal examples of variance 1 / n, (examples, n, n), and which of them are expensive, (examples,)."""
    return jax.random.normal(key, (examples, n, n)) / n**0.5, jnp.arange(examples) % EXPENSIVE_EVERY == 0


def branch_per_example_in_numpy(xs, are_expensive):
    """Compute the branch of each example in NumPy."""
    return np.where(are_expensive[:, None, None], expensive_in_numpy(xs), 2 * xs)


def cost_of_branch_per_example(*, examples, n):
    """Return the cost of running only the branch of each example."""
    flops = sum(flops_of_branch(n=n, is_expensive=place % EXPENSIVE_EVERY == 0) for place in range(examples))
    return Cost(flops=flops, bytes=2 * examples * n**2 * FLOAT_BYTES)


@workload(
    inputs=examples_and_choices,
    params={"examples": 32, "n": levels(quick=64, full=512, by_device={"gpu": 512})},
    reference=branch_per_example_in_numpy,
    cost=cost_of_branch_per_example,
    modes=("jit",),
    implementation="vmap_cond",
    compiles=1,
    caching=Caching(new_shape=lambda *, n: {"n": n + 1}),
    level="full",
)
def branch_per_example(xs, are_expensive):
    """One of two functions for each example, (examples, n, n), (examples,) -> (examples, n, n): vmapped `lax.cond`.

    Source: JAX's documentation, `jax.lax.cond`: under vmap both branches are computed.
    """
    return jax.vmap(one_branch)(are_expensive, xs)


def one_branch(is_expensive, x):
    """Run the branch of one example."""
    return jax.lax.cond(is_expensive, expensive, cheap, x)


@branch_per_example.implementation(name="where")
def where_per_example(xs, are_expensive):
    """`jnp.where`: both branches run for all examples, as when `vmap` transforms `lax.cond`."""
    return jnp.where(are_expensive[:, None, None], expensive(xs), cheap(xs))


@branch_per_example.implementation
def map_cond(xs, are_expensive):
    """`lax.map` of `lax.cond`: examples in sequence, each with only its own branch."""
    return jax.lax.map(lambda example: one_branch(*example), (are_expensive, xs))
