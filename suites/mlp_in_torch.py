"""MLPs in PyTorch, beside which `mlp_epoch` is timed."""

from functools import cache

import jax

from suites.mlp_networks import NETWORKS, RATE


def summed_loss(params, images, labels, activation):
    """The summed loss of a batch in PyTorch."""
    from torch.nn import functional

    function = {"relu": functional.relu, "swish": functional.silu}[activation]
    *hidden, last = (params[f"Dense_{number}"] for number in range(len(params)))
    for layer in hidden:
        images = function(images @ layer["kernel"] + layer["bias"])
    return functional.cross_entropy(images @ last["kernel"] + last["bias"], labels, reduction="sum")


def step(state, images, labels, *, network, loss=summed_loss):
    """PyTorch, eager: backward pass by autograd, params changed in place."""
    import torch

    variables, _ = state
    followed = jax.tree.map(lambda param: param.detach().requires_grad_(), variables["params"])
    value = loss(followed, images, labels, NETWORKS[network].activation)
    slopes = torch.autograd.grad(value, jax.tree.leaves(followed))
    for param, slope in zip(jax.tree.leaves(variables["params"]), slopes, strict=True):
        param.sub_(slope, alpha=RATE)
    return state, value.detach()


@cache
def compiled_loss():
    """The loss as `torch.compile` makes it: its forward and its backward pass."""
    import torch

    return torch.compile(summed_loss)


def compiled_step(state, images, labels, *, network):
    """PyTorch, its forward and backward pass by `torch.compile`."""
    return step(state, images, labels, network=network, loss=compiled_loss())
