"""Derivatives: which composition of forward and reverse mode is cheapest, and what does recomputing save?"""

import jax
import jax.numpy as jnp
import numpy as np

from jaxmeter import Answer, Caching, Cost, Figure, Published, itemsize, levels, workload
from jaxmeter.suites.networks_in_numpy import logistic

FLOAT_BYTES = itemsize("float32")


def layer_and_point(key, *, inputs, outputs):
    """Return weights of variance 1 / inputs, shape (outputs, inputs), and a standard normal point, shape (inputs,)."""
    weights, point = jax.random.split(key)
    return jax.random.normal(weights, (outputs, inputs)) / inputs**0.5, jax.random.normal(point, (inputs,))


def layer(weights, x):
    """Return the output of a dense layer, tanh(W x): (outputs, inputs), (inputs,) -> (outputs,)."""
    return jnp.tanh(weights @ x)


def jacobian_in_numpy(weights, x):
    """Return diag(1 - tanh²(W x)) W."""
    return (1 - np.tanh(weights @ x) ** 2)[:, None] * weights


@workload(
    inputs=layer_and_point,
    params={"inputs": levels(quick=3, default=1_000, full=100), "outputs": levels(quick=2, full=(100, 1_000))},
    reference=jacobian_in_numpy,
    # The product W x, and one scaling of each weight: neither mode comes near this lower bound.
    cost=lambda *, inputs, outputs: Cost(flops=3 * inputs * outputs, bytes=2 * inputs * outputs * FLOAT_BYTES),
    modes=("eager", "jit"),
    implementation="jacfwd",
    baseline="jacfwd:jit",
    compiles=1,
    caching=Caching(new_shape=lambda *, inputs: {"inputs": inputs + 1}),
    published=(
        Published(
            source="Sapunov, JAX in Action (MEAP v3, 2022), chapter 4",
            device="not stated",
            timed="wall time of transforming, making the input and calling, without waiting, mean ± standard deviation",
            figure=Figure("jacrev:eager", 29.9e-3, 2.5e-3),
            against=Figure("jacfwd:eager", 17.8e-3, 336e-6),
            differs="another function of 3 inputs and 2 outputs, polynomials that return a list; here the input is "
            "made beforehand and jaxmeter waits for the result; both transform in every call",
            at={"inputs": 3, "outputs": 2},
        ),
    ),
    level="default",
)
def jacobian(weights, x):
    """Jacobian of tanh(W x), (m, n), (n,) -> (m, n), by `jax.jacfwd`: one pass for each of the n inputs.

    Source: Sapunov, JAX in Action, 2022, chapter 4; Griewank & Walther, Evaluating Derivatives, 2008, chapter 3.
    """
    return jax.jacfwd(layer, argnums=1)(weights, x)


@jacobian.implementation
def jacrev(weights, x):
    """`jax.jacrev`: one pass for each of the m outputs."""
    return jax.jacrev(layer, argnums=1)(weights, x)


def examples_and_weights(key, *, examples, features):
    """Return standard normal examples times labels (-1 or 1), (examples, features), weights and a direction."""
    rows, weights, direction = jax.random.split(key, 3)
    return (
        jax.random.normal(rows, (examples, features)),
        jax.random.normal(weights, (features,)) / features**0.5,
        jax.random.normal(direction, (features,)),
    )


def logistic_loss(weights, rows):
    """Return the mean of log(1 + exp(-rows · weights)), (features,), (examples, features) -> ()."""
    return jnp.mean(jax.nn.softplus(-rows @ weights))


def hessian_in_numpy(rows, weights, direction):
    """Return rowsᵀ diag(s (1 - s)) rows / examples, where s = sigmoid(rows · weights)."""
    probability = logistic(rows @ weights)
    return rows.T @ ((probability * (1 - probability))[:, None] * rows) / len(rows)


@workload(
    inputs=examples_and_weights,
    params={"examples": 1_000, "features": levels(quick=100, full=1_000, by_device={"gpu": 1_000})},
    reference=hessian_in_numpy,
    cost=lambda *, examples, features: Cost(
        flops=2 * examples * features**2, bytes=(examples * features + features**2) * FLOAT_BYTES
    ),
    modes=("jit",),
    implementation="forward_over_reverse",
    compiles=1,
    caching=Caching(new_shape=lambda *, features: {"features": features + 1}),
    level="full",
)
def hessian(rows, weights, direction):
    """Hessian of a logistic loss, (examples, n), (n,) -> (n, n), by `jax.hessian`: jacfwd of jacrev.

    Source: JAX's documentation, "The Autodiff Cookbook".
    """
    return jax.hessian(logistic_loss)(weights, rows)


@hessian.implementation
def reverse_over_reverse(rows, weights, direction):
    """`jacrev` of `jacrev`."""
    return jax.jacrev(jax.jacrev(logistic_loss))(weights, rows)


@hessian.implementation
def reverse_over_forward(rows, weights, direction):
    """`jacrev` of `jacfwd`: n values to differentiate, each in reverse."""
    return jax.jacrev(jax.jacfwd(logistic_loss))(weights, rows)


def hessian_vector_product_in_numpy(rows, weights, direction):
    """Return the Hessian times the direction, multiplied from the right without an (n, n) matrix."""
    probability = logistic(rows @ weights)
    return rows.T @ (probability * (1 - probability) * (rows @ direction)) / len(rows)


@workload(
    inputs=examples_and_weights,
    params={"examples": 1_000, "features": levels(quick=300, full=3_000, by_device={"gpu": 3_000})},
    reference=hessian_vector_product_in_numpy,
    # Three products with the rows: by the weights, by the direction, and back.
    cost=lambda *, examples, features: Cost(flops=6 * examples * features, bytes=examples * features * FLOAT_BYTES),
    modes=("jit",),
    implementation="forward_over_reverse",
    compiles=1,
    caching=Caching(new_shape=lambda *, features: {"features": features + 1}),
    level="full",
)
def hessian_vector_product(rows, weights, direction):
    """Hessian of a logistic loss times a vector, (examples, n), (n,), (n,) -> (n,), by `jvp` of `grad`.

    Source: Pearlmutter, Fast Exact Multiplication by the Hessian, 1994.
    """
    return jax.jvp(lambda at: jax.grad(logistic_loss)(at, rows), (weights,), (direction,))[1]


@hessian_vector_product.implementation(name="reverse_over_reverse")
def product_reverse_over_reverse(rows, weights, direction):
    """`grad` of the inner product of `grad` and the vector."""
    return jax.grad(lambda at: jnp.vdot(jax.grad(logistic_loss)(at, rows), direction))(weights)


@hessian_vector_product.implementation(name="full_hessian")
def product_with_the_full_hessian(rows, weights, direction):
    """The whole Hessian, then its product with the vector: n columns instead of one."""
    return jax.hessian(logistic_loss)(weights, rows) @ direction


def network_and_examples(key, *, examples, features, hidden):
    """Return standard normal weights, examples and targets; weights are scaled by the number of terms in their sums."""
    first, second, third, fourth = jax.random.split(key, 4)
    network = {
        "hidden": jax.random.normal(first, (hidden, features)) / features**0.5,
        "readout": jax.random.normal(second, (hidden,)) / hidden**0.5,
    }
    return network, jax.random.normal(third, (examples, features)), jax.random.normal(fourth, (examples,))


def squared_error(network, x, target):
    """Return half the squared error of readout · tanh(hidden x) for one example."""
    return (network["readout"] @ jnp.tanh(network["hidden"] @ x) - target) ** 2 / 2


gradient_of_one_example = jax.jit(jax.grad(squared_error))


def per_example_gradient_in_numpy(network, xs, targets):
    """Return the gradients of all examples at once, with backpropagation written by hand."""
    active = np.tanh(xs @ network["hidden"].T)
    error = active @ network["readout"] - targets
    back = error[:, None] * network["readout"] * (1 - active**2)
    return {"hidden": back[:, :, None] * xs[:, None, :], "readout": error[:, None] * active}


@workload(
    inputs=network_and_examples,
    params={"examples": levels(default=16, full=64), "features": 32, "hidden": 64},
    reference=per_example_gradient_in_numpy,
    # Per weight and example: a product and a sum on the way to the error, and a product for the gradient.
    cost=lambda *, examples, features, hidden: Cost(
        flops=3 * examples * hidden * (features + 1), bytes=(1 + examples) * hidden * (features + 1) * FLOAT_BYTES
    ),
    modes=("eager", "jit"),
    implementation="vmap",
    baseline="vmap:jit",
    compiles=1,
    caching=Caching(new_shape=lambda *, examples: {"examples": examples + 1}),
    level="default",
)
def per_example_gradient(network, xs, targets):
    """Gradient by the weights for each example, (examples, n), (examples,) -> `examples` gradients, by `vmap`.

    Source: JAX's documentation, "Advanced automatic differentiation", per-example gradients.
    """
    return jax.vmap(jax.grad(squared_error), in_axes=(None, 0, 0))(network, xs, targets)


@per_example_gradient.implementation(modes=("eager",))
def loop(network, xs, targets):
    """Python loop over examples, one `grad` each; unstacking the arrays and stacking the gradients are timed too."""
    return stacked(jax.grad(squared_error)(network, x, target) for x, target in zip(xs, targets, strict=True))


@per_example_gradient.implementation(modes=("mixed",))
def jitted_loop(network, xs, targets):
    """Python loop over examples that calls one jitted `grad`, with one dispatch per example.

    Unstacking the arrays of examples and targets and stacking the gradients are timed too. Neither is jitted here.
    """
    return stacked(gradient_of_one_example(network, x, target) for x, target in zip(xs, targets, strict=True))


def stacked(trees):
    """Return pytrees of equal structure, stacked along a new first axis."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


SWISH_DERIVATIVES = 3
SWISH_OPERATIONS = 22
"""Operations per element in the closed form. The sigmoid takes 3: exp, sum and quotient. Its derivatives s', s'' and
s''' take 2, 3 and 5. The function and its derivatives take 1, 2, 3 and 3."""


def points(key, *, n):
    """Return standard normal numbers times 3, shape (n,) float32: they cover both tails and the bend."""
    return 3 * jax.random.normal(key, (n,))


def swish(x):
    """Return swish, x · sigmoid(x).

    Source: Ramachandran et al., Searching for Activation Functions, 2017.
    """
    return x * jax.nn.sigmoid(x)


def swish_derivatives_from(s, x):
    """Return swish and its derivatives, in terms of the sigmoid's value s."""
    s1 = s * (1 - s)
    s2 = s1 * (1 - 2 * s)
    s3 = s1 * (1 - 6 * s + 6 * s * s)
    return x * s, s + x * s1, 2 * s1 + x * s2, 3 * s2 + x * s3


def swish_derivatives_in_numpy(x):
    """Return swish and its derivatives in closed form with NumPy."""
    return swish_derivatives_from(logistic(x), x)


@workload(
    inputs=points,
    params={"n": levels(quick=100_000, full=10_000_000, by_device={"gpu": 10_000_000})},
    reference=swish_derivatives_in_numpy,
    cost=lambda *, n: Cost(flops=SWISH_OPERATIONS * n, bytes=(2 + SWISH_DERIVATIVES) * n * FLOAT_BYTES),
    modes=("eager", "jit"),
    implementation="vmap_grad",
    baseline="closed_form:jit",
    compiles=1,
    caching=Caching(new_shape=lambda *, n: {"n": n + 1}),
    level="full",
)
def swish_derivatives(x):
    """Swish and its first three derivatives, (n,) -> four arrays (n,), by `vmap` of `grad` of `grad` of `grad`.

    Source: Ramachandran et al., Searching for Activation Functions, 2017.
    """
    results, function = [], swish
    for _ in range(1 + SWISH_DERIVATIVES):
        results.append(jax.vmap(function)(x))
        function = jax.grad(function)
    return tuple(results)


@swish_derivatives.implementation(modes=("jit",))
def nested_jvp(x):
    """Nested forward mode along a vector of ones: an element-wise function needs no `vmap`."""
    results, function = [], swish
    for _ in range(1 + SWISH_DERIVATIVES):
        results.append(function(x))
        function = along_ones(function)
    return tuple(results)


def along_ones(function):
    """Return the derivative of an element-wise function."""
    return lambda x: jax.jvp(function, (x,), (jnp.ones_like(x),))[1]


@swish_derivatives.implementation(modes=("jit",))
def closed_form(x):
    """The derivatives in closed form, written by hand."""
    return swish_derivatives_from(jax.nn.sigmoid(x), x)


EXPANSION = 4
"""Ratio of a block's hidden width to its width, as in Vaswani et al., Attention Is All You Need, 2017, section 3.3."""


def chain_of_blocks(key, *, layers, width, batch):
    """Return all blocks' weights, (layers, width, hidden) and (layers, hidden, width), and a batch, (batch, width)."""
    into, out, x = jax.random.split(key, 3)
    hidden = EXPANSION * width
    weights = {
        "into": jax.random.normal(into, (layers, width, hidden)) / width**0.5,
        # This scale keeps the sum of all blocks' outputs as large as one of them.
        "out": jax.random.normal(out, (layers, hidden, width)) / (layers * hidden) ** 0.5,
    }
    return weights, jax.random.normal(x, (batch, width))


def block(x, weights):
    """Return a residual block's output, x + swish(x into) out, in the form that `lax.scan` needs."""
    return x + swish(x @ weights["into"]) @ weights["out"], None


def chain_gradient(body, weights, x):
    """Return the gradient by the weights of the mean square of the chain's output; `body` is the block."""
    return jax.grad(lambda weights: jnp.mean(jax.lax.scan(body, x, weights)[0] ** 2))(weights)


def recomputing(policy):
    """Return the block under `jax.checkpoint`: its backward pass recomputes what the policy does not save."""
    # A scan's backward pass is a loop of its own: the compiler cannot merge the two, so nothing has to prevent it.
    return jax.checkpoint(block, policy=policy, prevent_cse=False)


def chain_gradient_in_numpy(weights, x):
    """Return the gradient, with backpropagation written by hand, block after block."""
    saved = []
    for into, out in zip(weights["into"], weights["out"], strict=True):
        hidden = x @ into
        s = logistic(hidden)
        saved.append((x, hidden, s))
        x = x + (hidden * s) @ out
    back = 2 * x / x.size
    gradient = {name: np.empty_like(array) for name, array in weights.items()}
    for number in reversed(range(len(saved))):
        x, hidden, s = saved[number]
        gradient["out"][number] = (hidden * s).T @ back
        inside = (back @ weights["out"][number].T) * (s + hidden * s * (1 - s))
        gradient["into"][number] = x.T @ inside
        back = back + inside @ weights["into"][number].T
    return gradient


def cost_of_chain(*, layers, width, batch):
    """Return the cost: two products forward and four back per block, less one, as the input needs no gradient."""
    product = 2 * batch * width * EXPANSION * width
    weights = 2 * layers * width * EXPANSION * width
    return Cost(flops=(6 * layers - 1) * product, bytes=(2 * weights + batch * width) * FLOAT_BYTES)


@workload(
    inputs=chain_of_blocks,
    params={"layers": 8, "width": levels(default=128, full=(16, 512), by_device={"gpu": 1_024}), "batch": 256},
    reference=chain_gradient_in_numpy,
    cost=cost_of_chain,
    modes=("jit",),
    implementation="no_checkpoint",
    compiles=1,
    caching=Caching(new_shape=lambda *, batch: {"batch": batch + 1}),
    answer=Answer(
        "What does rematerialization save?",
        "nothing_saveable:jit",
        against="no_checkpoint:jit",
        metric="temp_bytes",
        rank=10,
    ),
    level="default",
)
def rematerialization(weights, x):
    """Gradient of a chain of residual blocks by weights, (layers, n, 4 n), (layers, 4 n, n) -> the same, by `grad`.

    Source: Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016.
    """
    return chain_gradient(block, weights, x)


@rematerialization.implementation
def everything_saveable(weights, x):
    """`jax.checkpoint` around each block, which saves all values: nothing is computed again."""
    return chain_gradient(recomputing(jax.checkpoint_policies.everything_saveable), weights, x)


@rematerialization.implementation
def dots_saveable(weights, x):
    """`jax.checkpoint` around each block, which saves matrix products: the rest is cheap to compute again."""
    return chain_gradient(recomputing(jax.checkpoint_policies.dots_saveable), weights, x)


@rematerialization.implementation
def nothing_saveable(weights, x):
    """`jax.checkpoint` around each block, which saves only its input: the forward pass runs twice."""
    return chain_gradient(recomputing(jax.checkpoint_policies.nothing_saveable), weights, x)
