"""Networks in NumPy: layers with their slopes written out, back-propagation, and updates of their parameters.

What suites that train have as their reference, in float64. A layer is a function of its inputs that gives a `Passed`;
a network is its layers by name, first to last, those with parameters named as Flax names them.
"""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, NamedTuple

import jax
import numpy as np

NORM_EPSILON, NORM_MOMENTUM = 1e-5, 0.99
"""Of Flax's batch normalisation."""

DECAY, SQUARE_DECAY, EPSILON = 0.9, 0.999, 1e-8
"""Kingma & Ba, Adam, 2015, algorithm 1."""


class Update(NamedTuple):
    """What an optimiser has for each parameter: numbers, the parameter among them, and operations of a step."""

    numbers: int
    operations: int


SGD = Update(numbers=1, operations=2)
"""A product and a difference."""

ADAM = Update(numbers=3, operations=14)
"""3 for the mean, 4 for the mean square, 2 for their bias, root, sum, quotient, and 2 for the update."""


class Passed(NamedTuple):
    """What a layer makes of its inputs.

    Args:
      to_inputs: From the loss's slope by the output to its slope by the inputs.
      to_params: The same by the layer's parameters; None where it has none.
    """

    output: Any
    to_inputs: Callable[[Any], Any]
    to_params: Callable[[Any], dict[str, Any]] | None = None


# Layers


def dense(layer, x):
    """Its bias may be left out, (b, n) -> (b, m)."""

    def to_params(slope):
        every = {"kernel": x.T @ slope, "bias": slope.sum(0)}
        return {name: every[name] for name in layer}

    return Passed(x @ layer["kernel"] + layer.get("bias", 0), lambda slope: slope @ layer["kernel"].T, to_params)


def windows(x):
    """What a 3x3 kernel sees with zeros beyond the border, (b, h, w, c) -> (b, h, w, 9 c)."""
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    seen = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    return np.moveaxis(seen, 3, -1).reshape(*x.shape[:3], -1)


def convolution(layer, x):
    """By a 3x3 kernel, the dense layer of what it sees; its bias may be left out, (b, h, w, c) -> (b, h, w, d)."""
    kernel, seen = layer["kernel"], windows(x)
    channels = kernel.shape[-1]
    rows = dense({**layer, "kernel": kernel.reshape(-1, channels)}, seen.reshape(-1, seen.shape[-1]))

    def to_inputs(slope):
        return windows(slope) @ kernel[::-1, ::-1].swapaxes(2, 3).reshape(-1, kernel.shape[2])

    def to_params(slope):
        gradient = rows.to_params(slope.reshape(-1, channels))
        return {**gradient, "kernel": gradient["kernel"].reshape(kernel.shape)}

    return Passed(rows.output.reshape(*x.shape[:3], channels), to_inputs, to_params)


def moments(x):
    """Mean and variance of each channel."""
    return x.mean((0, 1, 2)), x.var((0, 1, 2))


def normalisation(layer, x):
    """(b, h, w, c) -> the same, normal in each channel. Source: Ioffe & Szegedy 2015, algorithm 1 and section 3."""
    mean, variance = moments(x)
    deviation = np.sqrt(variance + NORM_EPSILON)
    normal = (x - mean) / deviation

    def to_params(slope):
        return {"scale": (slope * normal).sum((0, 1, 2)), "bias": slope.sum((0, 1, 2))}

    def to_inputs(slope):
        slope = slope * layer["scale"]
        return (slope - slope.mean((0, 1, 2)) - normal * (slope * normal).mean((0, 1, 2))) / deviation

    return Passed(normal * layer["scale"] + layer["bias"], to_inputs, to_params)


def average_pool(x):
    """The mean of each 2x2, (b, h, w, c) -> (b, h/2, w/2, c)."""
    batch, height, width, channels = x.shape
    squares = x.reshape(batch, height // 2, 2, width // 2, 2, channels)
    return Passed(squares.mean((2, 4)), lambda slope: (slope / 4).repeat(2, axis=1).repeat(2, axis=2))


def flat(x):
    """(b, h, w, c) -> (b, h w c)."""
    return Passed(x.reshape(len(x), -1), lambda slope: slope.reshape(x.shape))


def relu(x, factors=1.0):
    """Rectified; with dropout, `factors` are 0 where a value is left out and what the others grow by."""
    return Passed(np.maximum(x, 0) * factors, lambda slope: slope * factors * (x > 0))


def logistic(x):
    """1 / (1 + exp(-x)), which does not overflow."""
    return 0.5 * (1 + np.tanh(x / 2))


def swish(x):
    """Its argument times its logistic. Source: Ramachandran et al., Searching for Activation Functions, 2017."""
    gate = logistic(x)
    return Passed(x * gate, lambda slope: slope * gate * (1 + x * (1 - gate)))


ACTIVATIONS = {"relu": relu, "swish": swish}


# Networks


def mlp(params, activation=relu):
    """As `models.MLP`: dense layers with an activation between them."""
    network = {}
    for number in range(sum(name.startswith("Dense") for name in params)):
        if number:
            network[f"activation_{number}"] = activation
        network[f"Dense_{number}"] = partial(dense, params[f"Dense_{number}"])
    return network


def cnn(params, factors=1.0):
    """As `models.CNN`, whose dropout multiplies hidden values by `factors`."""
    network = {}
    for number in range(sum(name.startswith("Conv") for name in params)):
        for kind, layer in (("Conv", convolution), ("BatchNorm", normalisation)):
            if (name := f"{kind}_{number}") in params:
                network[name] = partial(layer, params[name])
        network[f"relu_{number}"] = relu
        network[f"pool_{number}"] = average_pool
    return {**network, "flat": flat, **mlp(params, partial(relu, factors=factors))}


def forward(network, inputs):
    """What each layer passes on, by name."""
    passed = {}
    for name, layer in network.items():
        passed[name] = layer(inputs)
        inputs = passed[name].output
    return passed


def output_of(passed):
    """What the last layer gave."""
    return list(passed.values())[-1].output


def backward(passed, slope):
    """The gradient by all parameters, from the slope by the output. Source: Rumelhart, Hinton & Williams, 1986."""
    gradient = {}
    for name, layer in reversed(passed.items()):
        if layer.to_params is not None:
            gradient[name] = layer.to_params(slope)
        if name != next(iter(passed)):  # nobody asks for the slope by the inputs
            slope = layer.to_inputs(slope)
    return gradient


# Losses


def softmax(logits):
    """Probabilities along the last axis."""
    shares = np.exp(logits - logits.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True)


def cross_entropy(logits, labels):
    """Loss of each example, (b, classes), (b,) -> (b,)."""
    logits = logits - logits.max(-1, keepdims=True)
    return np.log(np.exp(logits).sum(-1)) - logits[np.arange(len(labels)), labels]


def mean_cross_entropy(logits, labels):
    """Of a batch, (b, classes), (b,): (the mean, its slope by the logits)."""
    slope = softmax(logits)
    slope[np.arange(len(labels)), labels] -= 1
    return cross_entropy(logits, labels).mean(), slope / len(labels)


def gradient(passed, labels):
    """Mean cross-entropy of a batch, and its gradient by all parameters."""
    loss, slope = mean_cross_entropy(output_of(passed), labels)
    return loss, backward(passed, slope)


# Training


def sgd(params, memory, slopes, *, rate):
    """Parameters and memory after a step of stochastic gradient descent, which remembers nothing."""
    return jax.tree.map(lambda param, slope: param - rate * slope, params, slopes), memory


def adam(params, memory, slopes, *, rate):
    """Parameters, and what Optax's Adam remembers, after a step. Source: Kingma & Ba 2015, algorithm 1."""
    before, *rest = memory
    count = before.count + 1
    mean = jax.tree.map(lambda old, slope: DECAY * old + (1 - DECAY) * slope, before.mu, slopes)
    square = jax.tree.map(lambda old, slope: SQUARE_DECAY * old + (1 - SQUARE_DECAY) * slope**2, before.nu, slopes)

    def moved(param, m, v):
        m, v = m / (1 - DECAY**count), v / (1 - SQUARE_DECAY**count)
        return param - rate * m / (np.sqrt(v) + EPSILON)

    return jax.tree.map(moved, params, mean, square), (before._replace(count=count, mu=mean, nu=square), *rest)


def adamw(params, memory, slopes, *, rate, decay):
    """The same of Optax's AdamW. Source: Loshchilov & Hutter, Decoupled Weight Decay Regularization, 2019."""
    after, memory = adam(params, memory, slopes, rate=rate)
    return jax.tree.map(lambda new, old: new - rate * decay * old, after, params), memory


def running_moments(before, passed):
    """Batch normalisation's running means and variances after a step."""
    after = {}
    for name, old in before.items():
        mean, variance = moments(passed[name.replace("BatchNorm", "Conv")].output)
        new = {"mean": mean, "var": variance}
        after[name] = {kind: NORM_MOMENTUM * old[kind] + (1 - NORM_MOMENTUM) * new[kind] for kind in new}
    return after


def train_step(network, update, state, inputs, labels):
    """As `models.train_step` on the mean loss: (state, the loss before it).

    Args:
      network: From parameters to layers.
      update: `sgd` or `adam` with a rate.
    """
    variables, memory = state
    passed = forward(network(variables["params"]), inputs)
    loss, slopes = gradient(passed, labels)
    params, memory = update(variables["params"], memory, slopes)
    after = {**variables, "params": params}
    if "batch_stats" in variables:
        after["batch_stats"] = running_moments(variables["batch_stats"], passed)
    return (after, memory), loss


# What a step changed


def changes(after, before):
    """What training changed of each parameter, from the states before and after it.

    A step moves most parameters by so little that its errors, and no step at all, lie within the tolerance of what
    they are after it.
    """
    # A peer's state may be an object of its own.
    after, _ = jax.tree.unflatten(jax.tree.structure(before), jax.tree.leaves(after))
    return jax.tree.map(np.subtract, after["params"], before[0]["params"])


def lengths(after, before):
    """Root mean square of each change, in which what float32 rounds of the parameter weighs less than in an entry.

    In the change's format, whose tolerance is that of the result; the sum is in float64.
    """

    def length(change):
        return np.sqrt(np.square(change, dtype=np.float64).mean()).astype(change.dtype)

    return jax.tree.map(length, changes(after, before))


GROUPS = 64
"""Of a direction's numbers: enough that two updates which differ are not equal in all by chance."""


def length_and_direction(tree):
    """Root mean square of all entries, and their direction, in which no single one decides.

    The direction is the sums of as many groups of entries as GROUPS says, each entry with a random sign, over their
    length. They differ by about as much as the directions themselves. Source: Charikar, Chen & Farach-Colton, Finding
    Frequent Items in Data Streams, 2002.
    """
    entries = np.concatenate([np.ravel(leaf).astype(np.float64) for leaf in jax.tree.leaves(tree)])
    signs = 2 * np.random.default_rng(0).integers(0, 2, entries.size) - 1
    sums = np.bincount(np.arange(entries.size) % GROUPS, signs * entries)
    return np.sqrt(np.square(entries).mean()), sums / np.linalg.norm(sums)


def told_of_adam(after, before):
    """What a format with few digits leaves comparable of a step with Adam, from the states before and after it.

    Length and direction of the update and of the mean slope; the count and the mean squares as they are.
    """
    _, (adam, *_) = after
    return adam.count, adam.nu, length_and_direction(changes(after, before)), length_and_direction(adam.mu)


def with_changes(step, changed=changes):
    """A reference step that gives (its result, what it changed)."""

    @wraps(step)
    def both(state, *batch, **params):
        result = step(state, *batch, **params)
        return result, changed(result[0], state)

    return both


def result_and_changes(result, *, inputs):
    """What is compared with that, of a result (state, loss)."""
    return result, changes(result[0], inputs[0])


def result_and_lengths(result, *, inputs):
    """The same where `lengths` are compared."""
    return result, lengths(result[0], inputs[0])


def loss_and_update(step):
    """A reference step that gives its loss, and what `told_of_adam` leaves of its state, alone."""

    @wraps(step)
    def told(state, *batch, **params):
        after, loss = step(state, *batch, **params)
        return loss, told_of_adam(after, state)

    return told


def told_of_step(result, *, inputs):
    """What is compared with that, of a result (state, loss)."""
    after, loss = result
    return loss, told_of_adam(after, inputs[0])


# Epochs that are fed batch by batch


def unknown(tree):
    """NaN in place of every number."""
    return jax.tree.map(lambda leaf: np.full(np.shape(leaf), np.nan), tree)


def epoch_step(state, *batch, step, told, checked):
    """A reference's step in an epoch, of which it knows the first ones alone: (state for the next call, loss).

    The leaves of that state are what of it is compared; the state itself is inside a function, where the check does not
    look. Of later steps all is NaN.

    Args:
      step: (state, *batch) -> (state, loss).
      told: (state, the one before the epoch) -> what is compared.
      checked: How many steps.
    """
    done, begun, state_now = state.func() if isinstance(state, jax.tree_util.Partial) else (0, state, state)
    if done == checked:
        return jax.tree_util.Partial(state.func, unknown(*state.args)), np.nan
    state_now, loss = step(state_now, *batch)
    return jax.tree_util.Partial(lambda: (done + 1, begun, state_now), told(state_now, begun)), loss


def epoch_result(result, inputs, *, told, checked):
    """What is compared with that, of a result ([[loss], …], [state])."""
    losses, (state,) = result
    compared = told(state, inputs[0][0])
    if len(losses) <= checked:
        return losses, compared
    return losses[:checked] + unknown(losses[checked:]), unknown(compared)


def first_losses(state, losses, means, begun, *, told, checked):
    """What of an epoch is compared: all of a short one, the first losses of one that the reference does not follow."""
    compared = told(state, begun)
    if len(losses) <= checked:
        return compared, list(losses), means
    rest = losses[checked:]
    return unknown(compared), [*losses[:checked], *unknown(rest)], unknown(means)
