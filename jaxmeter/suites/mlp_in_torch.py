"""MLPs in PyTorch, beside which `mlp_epoch` is timed.

As in JAX, the state is PyTorch's before the time begins, and each step gets its batch in NumPy's arrays.
"""

from functools import cache

import jax

from jaxmeter.suites.mlp_networks import NETWORKS, RATE
from jaxmeter.suites.peers import leaves_of


def arguments(state, images, labels):
    """A step's arguments: the state as tensors in memory of their own, a batch as it is."""
    import torch

    return jax.tree.map(torch.tensor, state), images, labels


def batch_in_torch(images, labels):
    """Images without a copy, and labels as PyTorch's losses want them (int64)."""
    import torch

    return torch.from_numpy(images), torch.from_numpy(labels).long()


def summed_loss(params, images, labels, activation):
    """The summed loss of a batch in PyTorch."""
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
        # Followed no longer: NumPy's arrays are made of it where results are compared.
        param.requires_grad_(False).sub_(slope, alpha=RATE)
    return state, value.detach()


def whole_step(params, images, labels, activation):
    """The loss before a step, which changes params in place."""
    import torch

    slopes, value = torch.func.grad_and_value(summed_loss)(params, images, labels, activation)
    for param, slope in zip(leaves_of(params), leaves_of(slopes), strict=True):
        param.sub_(slope, alpha=RATE)
    return value


@cache
def compiled():
    """The whole step as `torch.compile` makes it, without a break: forward and backward pass, and update."""
    import torch

    return torch.compile(whole_step, fullgraph=True, dynamic=False)


def compiled_step(state, images, labels, *, network):
    """PyTorch, the whole step by `torch.compile`: forward and backward pass, params changed in place."""
    variables, _ = state
    return state, compiled()(variables["params"], *batch_in_torch(images, labels), NETWORKS[network].activation)
