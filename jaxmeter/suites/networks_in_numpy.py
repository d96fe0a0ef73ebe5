"""Networks in NumPy: layers with explicit gradients, back-propagation, and updates of the parameters.

Suites that train use these networks in float64 as their reference. A layer is a function from inputs to a `Passed`.
A network is a dictionary of layers by name, first to last. Layers with parameters have the names that Flax uses.
"""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, NamedTuple

import jax
import numpy as np

NORM_EPSILON, NORM_MOMENTUM = 1e-5, 0.99
"""Constants of Flax's batch normalisation."""

DECAY, SQUARE_DECAY, EPSILON = 0.9, 0.999, 1e-8
"""Constants of Kingma & Ba, Adam, 2015, algorithm 1."""


class Update(NamedTuple):
    """Cost of an optimiser for each parameter: stored numbers, with the parameter itself, and operations of a step."""

    numbers: int
    operations: int


SGD = Update(numbers=1, operations=2)
"""2 operations: a product and a difference."""

ADAM = Update(numbers=3, operations=14)
"""14 operations: mean 3, mean square 4, bias corrections 2, root, sum and quotient 1 each, update 2."""


class Passed(NamedTuple):
    """Result of a layer's forward pass.

    Args:
      to_inputs: Function from the gradient at the output to the gradient by the inputs.
      to_params: Function from the gradient at the output to the gradients by the parameters; None without any.
    """

    output: Any
    to_inputs: Callable[[Any], Any]
    to_params: Callable[[Any], dict[str, Any]] | None = None


# Layers


def dense(layer, x):
    """Apply a dense layer, (b, n) -> (b, m); the bias is optional."""

    def to_params(slope):
        every = {"kernel": x.T @ slope, "bias": slope.sum(0)}
        return {name: every[name] for name in layer}

    return Passed(x @ layer["kernel"] + layer.get("bias", 0), lambda slope: slope @ layer["kernel"].T, to_params)


def windows(x):
    """Return the zero-padded 3x3 window of each pixel, (b, h, w, c) -> (b, h, w, 9 c)."""
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    seen = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    return np.moveaxis(seen, 3, -1).reshape(*x.shape[:3], -1)


def convolution(layer, x):
    """Apply a 3x3 convolution as a dense layer over windows, (b, h, w, c) -> (b, h, w, d); the bias is optional."""
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
    """Return mean and variance of each channel."""
    return x.mean((0, 1, 2)), x.var((0, 1, 2))


def normalisation(layer, x):
    """Normalise each channel over a batch, (b, h, w, c) -> (b, h, w, c).

    Source: Ioffe & Szegedy 2015, algorithm 1 and section 3.
    """
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
    """Average each 2x2 window, (b, h, w, c) -> (b, h/2, w/2, c)."""
    batch, height, width, channels = x.shape
    squares = x.reshape(batch, height // 2, 2, width // 2, 2, channels)
    return Passed(squares.mean((2, 4)), lambda slope: (slope / 4).repeat(2, axis=1).repeat(2, axis=2))


def flat(x):
    """Flatten each image, (b, h, w, c) -> (b, h w c)."""
    return Passed(x.reshape(len(x), -1), lambda slope: slope.reshape(x.shape))


def relu(x, factors=1.0):
    """Apply relu; with dropout, `factors` are 0 for dropped values and scale the other values."""
    return Passed(np.maximum(x, 0) * factors, lambda slope: slope * factors * (x > 0))


def logistic(x):
    """Compute 1 / (1 + exp(-x)) without overflow."""
    return 0.5 * (1 + np.tanh(x / 2))


def swish(x):
    """Multiply x by its logistic. Source: Ramachandran et al., Searching for Activation Functions, 2017."""
    gate = logistic(x)
    return Passed(x * gate, lambda slope: slope * gate * (1 + x * (1 - gate)))


ACTIVATIONS = {"relu": relu, "swish": swish}


# Networks


def mlp(params, activation=relu):
    """Return the network of `models.MLP`: dense layers with an activation between them."""
    network = {}
    for number in range(sum(name.startswith("Dense") for name in params)):
        if number:
            network[f"activation_{number}"] = activation
        network[f"Dense_{number}"] = partial(dense, params[f"Dense_{number}"])
    return network


def cnn(params, factors=1.0):
    """Return the network of `models.CNN`; its dropout multiplies hidden values by `factors`."""
    network = {}
    for number in range(sum(name.startswith("Conv") for name in params)):
        for kind, layer in (("Conv", convolution), ("BatchNorm", normalisation)):
            if (name := f"{kind}_{number}") in params:
                network[name] = partial(layer, params[name])
        network[f"relu_{number}"] = relu
        network[f"pool_{number}"] = average_pool
    return {**network, "flat": flat, **mlp(params, partial(relu, factors=factors))}


def forward(network, inputs):
    """Return the `Passed` of each layer, by name."""
    passed = {}
    for name, layer in network.items():
        passed[name] = layer(inputs)
        inputs = passed[name].output
    return passed


def output_of(passed):
    """Return the output of the last layer."""
    return list(passed.values())[-1].output


def backward(passed, slope):
    """Return the gradient by all parameters, from the gradient at the output.

    Source: Rumelhart, Hinton & Williams, 1986.
    """
    gradient = {}
    for name, layer in reversed(passed.items()):
        if layer.to_params is not None:
            gradient[name] = layer.to_params(slope)
        if name != next(iter(passed)):  # the gradient by the inputs is not needed
            slope = layer.to_inputs(slope)
    return gradient


# Losses


def softmax(logits):
    """Return probabilities along the last axis."""
    shares = np.exp(logits - logits.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True)


def cross_entropy(logits, labels):
    """Return the loss of each example, (b, classes), (b,) -> (b,)."""
    logits = logits - logits.max(-1, keepdims=True)
    return np.log(np.exp(logits).sum(-1)) - logits[np.arange(len(labels)), labels]


def mean_cross_entropy(logits, labels):
    """Return (mean loss of a batch, its gradient by the logits), from (b, classes) and (b,)."""
    slope = softmax(logits)
    slope[np.arange(len(labels)), labels] -= 1
    return cross_entropy(logits, labels).mean(), slope / len(labels)


def gradient(passed, labels):
    """Return the mean cross-entropy of a batch, and its gradient by all parameters."""
    loss, slope = mean_cross_entropy(output_of(passed), labels)
    return loss, backward(passed, slope)


# Training


def sgd(params, memory, slopes, *, rate):
    """Return parameters and optimiser state after a step of stochastic gradient descent, which keeps no state."""
    return jax.tree.map(lambda param, slope: param - rate * slope, params, slopes), memory


def adam(params, memory, slopes, *, rate):
    """Return parameters and optimiser state after a step of Optax's Adam. Source: Kingma & Ba 2015, algorithm 1."""
    before, *rest = memory
    count = before.count + 1
    mean = jax.tree.map(lambda old, slope: DECAY * old + (1 - DECAY) * slope, before.mu, slopes)
    square = jax.tree.map(lambda old, slope: SQUARE_DECAY * old + (1 - SQUARE_DECAY) * slope**2, before.nu, slopes)

    def moved(param, m, v):
        m, v = m / (1 - DECAY**count), v / (1 - SQUARE_DECAY**count)
        return param - rate * m / (np.sqrt(v) + EPSILON)

    return jax.tree.map(moved, params, mean, square), (before._replace(count=count, mu=mean, nu=square), *rest)


def adamw(params, memory, slopes, *, rate, decay):
    """Return parameters and optimiser state after a step of Optax's AdamW.

    Source: Loshchilov & Hutter, Decoupled Weight Decay Regularization, 2019.
    """
    after, memory = adam(params, memory, slopes, rate=rate)
    return jax.tree.map(lambda new, old: new - rate * decay * old, after, params), memory


def running_moments(before, passed):
    """Return the running means and variances of batch normalisation after a step."""
    after = {}
    for name, old in before.items():
        mean, variance = moments(passed[name.replace("BatchNorm", "Conv")].output)
        new = {"mean": mean, "var": variance}
        after[name] = {kind: NORM_MOMENTUM * old[kind] + (1 - NORM_MOMENTUM) * new[kind] for kind in new}
    return after


def train_step(network, update, state, inputs, labels):
    """Compute a step like `models.train_step` on the mean loss: (state, loss before the step).

    Args:
      network: Function from parameters to layers.
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
    """Return the change of each parameter, from the states before and after training.

    A step changes most parameters very little. In the parameters themselves, the tolerance would hide errors of the
    step, and even a missing step.
    """
    # The state of a peer can be an object of another type.
    after, _ = jax.tree.unflatten(jax.tree.structure(before), jax.tree.leaves(after))
    return jax.tree.map(np.subtract, after["params"], before[0]["params"])


def lengths(after, before):
    """Return the root mean square of each change, which float32 rounding affects less than single entries.

    The values have the format of the change, so they get the tolerance of the result. The sum is in float64.
    """

    def length(change):
        return np.sqrt(np.square(change, dtype=np.float64).mean()).astype(change.dtype)

    return jax.tree.map(length, changes(after, before))


GROUPS = 64
"""Numbers that describe a direction: enough that two different updates do not agree in all of them by chance."""


def length_and_direction(tree):
    """Return the root mean square of all entries and a sketch of their direction, which no single entry dominates.

    The sketch sums GROUPS groups of entries, each entry with a random sign, and divides the sums by their length. Two
    sketches differ by about as much as the directions themselves.

    Source: Charikar, Chen & Farach-Colton, Finding Frequent Items in Data Streams, 2002.
    """
    entries = np.concatenate([np.ravel(leaf).astype(np.float64) for leaf in jax.tree.leaves(tree)])
    signs = 2 * np.random.default_rng(0).integers(0, 2, entries.size) - 1
    sums = np.bincount(np.arange(entries.size) % GROUPS, signs * entries)
    return np.sqrt(np.square(entries).mean()), sums / np.linalg.norm(sums)


def compared_of_adam(after, before):
    """Return what is comparable after a step of Adam in a low-precision format, from the states before and after it.

    These are the count, the mean squares, and the length and direction of the update and of the mean gradient.
    """
    _, (adam, *_) = after
    return adam.count, adam.nu, length_and_direction(changes(after, before)), length_and_direction(adam.mu)


def with_changes(step, changed=changes):
    """Return a reference step that returns (its result, its changes of the state)."""

    @wraps(step)
    def both(state, *batch, **params):
        result = step(state, *batch, **params)
        return result, changed(result[0], state)

    return both


def result_and_changes(result, *, inputs):
    """Return the values of a result (state, loss) that match the reference of `with_changes`."""
    return result, changes(result[0], inputs[0])


def result_and_lengths(result, *, inputs):
    """Return the values of a result that match the reference of `with_changes` with `lengths`."""
    return result, lengths(result[0], inputs[0])


def loss_and_update(step):
    """Return a reference step that returns its loss and the result of `compared_of_adam`, without its state."""

    @wraps(step)
    def compared(state, *batch, **params):
        after, loss = step(state, *batch, **params)
        return loss, compared_of_adam(after, state)

    return compared


def compared_of_step(result, *, inputs):
    """Return the values of a result (state, loss) that match the reference of `loss_and_update`."""
    after, loss = result
    return loss, compared_of_adam(after, inputs[0])


# Epochs that are fed batch by batch


def unknown(tree):
    """Return the tree with NaN in place of every number."""
    return jax.tree.map(lambda leaf: np.full(np.shape(leaf), np.nan), tree)


def epoch_step(state, *batch, step, compare, checked):
    """Run a reference step of an epoch whose first steps alone can be checked: (state for the next call, loss).

    The leaves of the returned state are the compared values. The state itself is inside a function, which the check
    does not inspect. All values of later steps are NaN.

    Args:
      step: (state, *batch) -> (state, loss).
      compare: (state, state before the epoch) -> the compared values.
      checked: Number of steps that are checked.
    """
    done, begun, state_now = state.func() if isinstance(state, jax.tree_util.Partial) else (0, state, state)
    if done == checked:
        return jax.tree_util.Partial(state.func, unknown(*state.args)), np.nan
    state_now, loss = step(state_now, *batch)
    return jax.tree_util.Partial(lambda: (done + 1, begun, state_now), compare(state_now, begun)), loss


def epoch_result(result, inputs, *, compare, checked):
    """Return the values of a result ([[loss], …], [state]) that match the reference `epoch_step`."""
    losses, (state,) = result
    compared = compare(state, inputs[0][0])
    if len(losses) <= checked:
        return losses, compared
    return losses[:checked] + unknown(losses[checked:]), unknown(compared)


def first_losses(state, losses, means, begun, *, compare, checked):
    """Return what is compared: all of a short epoch, or the first losses of an epoch that is too long to check."""
    compared = compare(state, begun)
    if len(losses) <= checked:
        return compared, list(losses), means
    rest = losses[checked:]
    return unknown(compared), [*losses[:checked], *unknown(rest)], unknown(means)
