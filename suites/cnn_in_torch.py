"""The CNN in PyTorch, beside which `cnn_step` is timed."""

import jax
import numpy as np

from suites.models import CNN_CLASSES, CNN_HIDDEN, CNN_RATE
from suites.networks_in_numpy import DECAY, EPSILON, SQUARE_DECAY


def arguments(state, images, labels):
    """A step's arguments as PyTorch has them; the state is its step, over parameters of its own.

    As in JAX, a batch of bytes is in the library's own arrays before, and becomes numbers inside the step.

    Its leaves are views of PyTorch's memory in the shapes that JAX has, so that nothing is converted when they are
    compared.
    """
    import torch
    from torch.nn import functional as F  # noqa: N812  as PyTorch's documentation has it

    made = {
        "Conv_0": torch.nn.Conv2d(3, 32, 3, padding=1),
        "Conv_1": torch.nn.Conv2d(32, 64, 3, padding=1),
        "Dense_0": torch.nn.Linear(64 * 8 * 8, CNN_HIDDEN),
        "Dense_1": torch.nn.Linear(CNN_HIDDEN, CNN_CLASSES),
    }
    layers = torch.nn.ModuleDict(made).to(memory_format=torch.channels_last)

    def forward(x):
        for name in ("Conv_0", "Conv_1"):
            x = F.avg_pool2d(F.relu(layers[name](x)), 2)
        x = x.permute(0, 2, 3, 1).flatten(1)
        return layers["Dense_1"](F.relu(layers["Dense_0"](x)))

    def step(images, labels):
        optimiser.zero_grad()
        loss = F.cross_entropy(forward(images.float() / 255), labels.long())
        loss.backward()
        optimiser.step()
        return loss.detach()

    def in_jax_shapes(of):
        return {
            name: {"kernel": _last_first(of(layer.weight)), "bias": of(layer.bias)} for name, layer in layers.items()
        }

    @torch.no_grad()
    def fill(views, arrays):
        jax.tree.map(lambda view, array: view.copy_(torch.from_numpy(np.array(array))), views, arrays)

    variables, (adam, *rest) = state
    optimiser = torch.optim.Adam(layers.parameters(), CNN_RATE, (DECAY, SQUARE_DECAY), EPSILON)
    for parameter in layers.parameters():
        optimiser.state[parameter] = {
            "step": torch.tensor(float(adam.count)),
            "exp_avg": torch.zeros_like(parameter),
            "exp_avg_sq": torch.zeros_like(parameter),
        }
    remembered = adam._replace(
        count=optimiser.state[layers["Conv_0"].weight]["step"],
        mu=in_jax_shapes(lambda parameter: optimiser.state[parameter]["exp_avg"].detach()),
        nu=in_jax_shapes(lambda parameter: optimiser.state[parameter]["exp_avg_sq"].detach()),
    )
    params = in_jax_shapes(lambda parameter: parameter.detach())
    for views, arrays in ((params, variables["params"]), (remembered.mu, adam.mu), (remembered.nu, adam.nu)):
        fill(views, arrays)
    channels_first = torch.from_numpy(np.array(images)).permute(0, 3, 1, 2)
    views = {**variables, "params": params}, (remembered, *rest)
    return jax.tree_util.Partial(step, views), channels_first, torch.from_numpy(np.array(labels))


def _last_first(weight):
    """PyTorch's weight as JAX's kernel: (out, in, h, w) -> (h, w, in, out), (out, in) -> (in, out)."""
    return weight.permute(2, 3, 1, 0) if weight.ndim == 4 else weight.T


def step(state, images, labels):
    """The same network, loss and optimiser in PyTorch, channels last in memory."""
    return state, state.func(images, labels)
