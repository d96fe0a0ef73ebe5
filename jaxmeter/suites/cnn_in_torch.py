"""The CNN in PyTorch, eager and by `torch.compile`, for comparison with `cnn_step`.

As in JAX, a batch of bytes is in the library's own arrays before timing starts. The step converts the bytes to numbers.
"""

from functools import cache, partial

import jax
import numpy as np

from jaxmeter.suites.models import CNN_CHANNELS, CNN_CLASSES, CNN_HIDDEN, CNN_IMAGE, CNN_RATE
from jaxmeter.suites.networks_in_numpy import DECAY, EPSILON, SQUARE_DECAY
from jaxmeter.suites.peers import leaves_of

SHAPES = {
    "Conv_0": (CNN_CHANNELS[0], CNN_IMAGE[2], 3, 3),
    "Conv_1": (CNN_CHANNELS[1], CNN_CHANNELS[0], 3, 3),
    "Dense_0": (CNN_HIDDEN, CNN_CHANNELS[1] * (CNN_IMAGE[0] // 4) ** 2),
    "Dense_1": (CNN_CLASSES, CNN_HIDDEN),
}
"""Shapes of weights, outputs first, as in PyTorch."""


def zeros():
    """Return zeros for each param, {layer: {weight, bias}}, convolutions with channels last in memory."""
    import torch

    made = {}
    for name, shape in SHAPES.items():
        form = torch.channels_last if len(shape) == 4 else torch.contiguous_format
        weight = torch.zeros(shape).contiguous(memory_format=form)
        made[name] = {"weight": weight, "bias": torch.zeros(shape[0])}
    return made


def loss_of(params, images, labels):
    """Return the mean loss of a batch, images (b, 3, 32, 32) uint8."""
    from torch.nn import functional as F  # noqa: N812  as PyTorch's documentation has it

    x = images.float() / 255
    for name in ("Conv_0", "Conv_1"):
        x = F.avg_pool2d(F.relu(F.conv2d(x, **params[name], padding=1)), 2)
    x = F.relu(F.linear(x.permute(0, 2, 3, 1).flatten(1), **params["Dense_0"]))
    return F.cross_entropy(F.linear(x, **params["Dense_1"]), labels.long())


def whole_step(params, means, squares, count, images, labels):
    """Return the loss before a step with Adam, which changes all arguments but the batch in place."""
    import torch

    slopes, value = torch.func.grad_and_value(loss_of)(params, images, labels)
    count.add_(1)
    rate, root = CNN_RATE / (1 - DECAY**count), (1 - SQUARE_DECAY**count).sqrt()
    for param, mean, square, slope in zip(*map(leaves_of, (params, means, squares, slopes)), strict=True):
        mean.lerp_(slope, 1 - DECAY)
        square.mul_(SQUARE_DECAY).addcmul_(slope, slope, value=1 - SQUARE_DECAY)
        param.sub_(rate * mean / (square.sqrt() / root + EPSILON))
    return value


@cache
def compiled():
    """Return the whole step by `torch.compile` without a graph break: forward and backward pass, and update."""
    import torch

    return torch.compile(whole_step, fullgraph=True, dynamic=False)


def eager(params, means, squares, count):
    """Return a function (images, labels) -> loss: autograd, and PyTorch's own Adam from these moments and count."""
    import torch

    leaves = leaves_of(params)
    optimiser = torch.optim.Adam(leaves, CNN_RATE, (DECAY, SQUARE_DECAY), EPSILON)
    for param, mean, square in zip(leaves, leaves_of(means), leaves_of(squares), strict=True):
        param.requires_grad_()
        # Adam counts steps per parameter, so each parameter needs a count of its own.
        optimiser.state[param] = {"step": count.clone(), "exp_avg": mean, "exp_avg_sq": square}
    optimiser.state[leaves[0]]["step"] = count

    def step(images, labels):
        optimiser.zero_grad()
        value = loss_of(params, images, labels)
        value.backward()
        optimiser.step()
        return value.detach()

    return step


def by_compile(*state):
    """Return this function by `torch.compile`.

    Its tensors are arguments, so a step from a reset state compiles nothing.
    """
    return partial(compiled(), *state)


def arguments(state, images, labels, make=eager):
    """Return a step's arguments for PyTorch; the state is a `Partial` of the step over parameters of its own.

    Its leaves are views of PyTorch's memory in JAX's shapes, so a comparison converts nothing.

    Args:
      make: (params, Adam's means, Adam's squares, Adam's count) -> the step.
    """
    import torch

    variables, (adam, *rest) = state
    params, means, squares = zeros(), zeros(), zeros()
    count = torch.tensor(float(adam.count))
    seen = [in_jax_shapes(tree) for tree in (params, means, squares)]
    for views, arrays in zip(seen, (variables["params"], adam.mu, adam.nu), strict=True):
        jax.tree.map(lambda view, array: view.copy_(torch.from_numpy(np.array(array))), views, arrays)
    remembered = adam._replace(count=count, mu=seen[1], nu=seen[2])
    views = {**variables, "params": seen[0]}, (remembered, *rest)
    channels_first = torch.from_numpy(np.array(images)).permute(0, 3, 1, 2)
    step = make(params, means, squares, count)
    return jax.tree_util.Partial(step, views), channels_first, torch.from_numpy(np.array(labels))


compiled_arguments = partial(arguments, make=by_compile)


def in_jax_shapes(tree):
    """Return views of every tensor in JAX's shapes: (out, in, h, w) as (h, w, in, out), and (out, in) as (in, out)."""
    return {
        name: {
            "kernel": layer["weight"].detach().permute(*range(2, layer["weight"].ndim), 1, 0),
            "bias": layer["bias"].detach(),
        }
        for name, layer in tree.items()
    }


def step(state, images, labels):
    """PyTorch, eager: the same network, loss and optimiser, channels last in memory."""
    return state, state.func(images, labels)


def compiled_step(state, images, labels):
    """PyTorch, the whole step by `torch.compile`: forward and backward pass, and update."""
    return step(state, images, labels)
