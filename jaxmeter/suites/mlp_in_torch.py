"""MLPs in PyTorch, with which `mlp_epoch` is compared.

As in JAX, the state is converted before timing begins, and each step receives its batch as NumPy arrays.
"""

from functools import cache

import jax

from jaxmeter.suites.mlp_networks import NETWORKS, RATE
from jaxmeter.suites.peers import leaves_of


def arguments(state, images, labels):
    """Return the arguments of a step: the state as tensors with their own memory, and the unchanged batch."""
    import torch

    return jax.tree.map(torch.tensor, state), images, labels


def batch_in_torch(images, labels):
    """Convert images without a copy, and labels to int64, which PyTorch's losses require."""
    import torch

    return torch.from_numpy(images), torch.from_numpy(labels).long()


def summed_loss(params, images, labels, activation):
    """Return the summed loss of a batch in PyTorch."""
    from torch.nn import functional

    function = {"relu": functional.relu, "swish": functional.silu}[activation]
    *hidden, last = (params[f"Dense_{number}"] for number in range(len(params)))
    for layer in hidden:
        images = function(images @ layer["kernel"] + layer["bias"])
    return functional.cross_entropy(images @ last["kernel"] + last["bias"], labels, reduction="sum")


def step(state, images, labels, *, network):
    """PyTorch, eager: backward pass by autograd, params changed in place."""
    import torch

    variables, _ = state
    params = variables["params"]
    leaves = leaves_of(params)
    for param in leaves:
        param.requires_grad_(True)
    value = summed_loss(params, *batch_in_torch(images, labels), NETWORKS[network].activation)
    slopes = torch.autograd.grad(value, leaves)
    for param, slope in zip(leaves, slopes, strict=True):
        # Without autograd from here on: the comparison of results converts params to NumPy arrays.
        param.requires_grad_(False).sub_(slope, alpha=RATE)
    return state, value.detach()


def whole_step(params, images, labels, activation):
    """Change params in place by one step, and return the loss before the step."""
    import torch

    slopes, value = torch.func.grad_and_value(summed_loss)(params, images, labels, activation)
    for param, slope in zip(leaves_of(params), leaves_of(slopes), strict=True):
        param.sub_(slope, alpha=RATE)
    return value


@cache
def compiled():
    """Return the whole step compiled by `torch.compile` without graph breaks: forward, backward and update."""
    import torch

    return torch.compile(whole_step, fullgraph=True, dynamic=False)


def compiled_step(state, images, labels, *, network):
    """PyTorch, the whole step by `torch.compile`: forward and backward pass, params changed in place."""
    variables, _ = state
    return state, compiled()(variables["params"], *batch_in_torch(images, labels), NETWORKS[network].activation)
