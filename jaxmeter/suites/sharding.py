"""Sharding: what dividing a step among devices costs, by the compiler's choice and by hand.

On the CPU the devices are made of the same cores: there this checks programs and measures overhead, not speedup.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec

from jaxmeter import Answer, Cost, Needs, State, itemsize, levels, workload
from jaxmeter.suites import networks_in_numpy as reference
from jaxmeter.suites.meshes import AXIS, SPLIT, WHOLE, mesh_of, placed

LAYERS = 3
BATCH = 256
"""Rows: of all devices together where scaling is strong, of each device where it is weak."""

RATE = 0.25
"""Learning rate times width, small enough that the loss falls: repeated steps stay finite, tried up to width 2048."""

MOMENTUM = 0.9
"""Usual with stochastic gradient descent: Sutskever et al. 2013."""

EXPANSION = 4
"""Width of a transformer's hidden layer over that of its input: Vaswani et al. 2017, section 3.3."""

ROWS = 128
"""Of the tensor-parallel layer's input."""


def rows(devices, scaling):
    """Of the whole batch."""
    return BATCH * devices if scaling == "weak" else BATCH


def training(key, *, width, devices, scaling="strong", spec=WHOLE):
    """Weights and their momentum, LAYERS times (width, width), a copy on each device; a divided batch (rows, width)."""
    *keys, of_x, of_y = jax.random.split(key, LAYERS + 2)
    weights = tuple(jax.random.normal(one, (width, width)) * np.sqrt(2 / width) for one in keys)
    state = weights, tuple(jnp.zeros_like(w) for w in weights)
    batch = tuple(jax.random.normal(one, (rows(devices, scaling), width)) for one in (of_x, of_y))
    return placed(state, devices, spec), *placed(batch, devices, SPLIT)


def divided_training(key, *, width, devices):
    """The same, weights and momentum divided among the devices too."""
    return training(key, width=width, devices=devices, spec=SPLIT)


def step_in_numpy(state, x, y):
    """The step with NumPy."""
    weights, momentum = state
    layers = {f"Dense_{number}": {"kernel": w} for number, w in enumerate(weights)}
    passed = reference.forward(reference.mlp(layers), x)
    error = reference.output_of(passed) - y
    loss, slopes = 0.5 * np.sum(error**2) / len(x), reference.backward(passed, error / len(x))
    velocity = tuple(MOMENTUM * m + slopes[name]["kernel"] for name, m in zip(layers, momentum, strict=True))
    rate = RATE / x.shape[1]
    return (tuple(w - rate * v for w, v in zip(weights, velocity, strict=True)), velocity), loss


def step_cost(*, width, devices, scaling, copies):
    """Products forward and backward; weights, momentum and batch read, the former written. Losses are not counted.

    Bytes are those of all devices together: each reads and writes its own copy of what is not divided.

    Args:
      copies: Of weights and momentum: one on each device, or 1 where they are divided.
    """
    batch, products = rows(devices, scaling), 3 * LAYERS - 1  # the first layer's input needs no gradient
    moved = copies * 4 * LAYERS * width**2 + 2 * batch * width
    return Cost(flops=2 * products * batch * width**2, bytes=moved * itemsize("float32"))


def replicated_step_cost(*, width, devices, scaling):
    """Of a step with a copy of weights and momentum on each device."""
    return step_cost(width=width, devices=devices, scaling=scaling, copies=devices)


def divided_step_cost(*, width, devices):
    """Of a step whose weights and momentum are divided. Weights that are gathered on the way are not counted."""
    return step_cost(width=width, devices=devices, scaling="strong", copies=1)


def loss_of(weights, x, y):
    """Half the squared error, summed over a row, mean over these rows."""
    for w in weights[:-1]:
        x = jax.nn.relu(x @ w)
    return 0.5 * jnp.sum((x @ weights[-1] - y) ** 2) / len(x)


def updated(state, gradient):
    """Stochastic gradient descent with momentum."""
    weights, momentum = state
    velocity = jax.tree.map(lambda m, g: MOMENTUM * m + g, momentum, gradient)
    rate = RATE / weights[0].shape[-1]
    return jax.tree.map(lambda w, v: w - rate * v, weights, velocity), velocity


def step_on_one_of_many(state, x, y):
    """A device's part of the step: its rows, then the mean over the devices."""
    loss, gradient = jax.value_and_grad(loss_of)(state[0], x, y)
    loss, gradient = jax.lax.pmean((loss, gradient), AXIS)
    return updated(state, gradient), loss


mapped_step = jax.pmap(step_on_one_of_many, axis_name=AXIS, in_axes=(None, 0, 0), out_axes=None)


@workload(
    inputs=training,
    params={
        "devices": levels(quick=2, full=(1, 4, 8), by_device={"gpu": (1, 4, 8), "tpu": (1, 4, 8)}),
        "scaling": levels(quick="strong", full="weak", by_device={"gpu": "weak", "tpu": "weak"}),
        "width": levels(quick=256, by_device={"gpu": 4096, "tpu": 4096}),
    },
    reference=step_in_numpy,
    cost=replicated_step_cost,
    needs=Needs(devices=lambda *, devices: devices),
    state=State(carry={"state": 0}),
    modes=("jit",),
    implementation="automatic",
    compiles=1,
    answer=Answer(
        "What does dividing a step cost?",
        "automatic:jit",
        against="shard_map:jit",
    ),
)
def data_parallel_step(state, x, y, *, devices):
    """Training step of an MLP, its batch divided among devices: state, two (rows, width) -> state, loss.

    Source: Goyal et al., Accurate, Large Minibatch SGD, 2017.
    """
    loss, gradient = jax.value_and_grad(loss_of)(state[0], x, y)
    return placed(updated(state, gradient), devices, WHOLE), loss


@data_parallel_step.implementation(name="shard_map")
def by_shard_map(state, x, y, *, devices):
    """`jax.shard_map` over the rows, with the mean of loss and gradient written out."""
    # Without the check, so that jax differentiates a device's own loss: with it, it sums over devices by itself.
    return jax.shard_map(
        step_on_one_of_many,
        mesh=mesh_of(devices),
        in_specs=(WHOLE, SPLIT, SPLIT),
        out_specs=(WHOLE, WHOLE),
        check_vma=False,
    )(state, x, y)


@data_parallel_step.implementation(name="pmap", modes=("mixed",))
def by_pmap(state, x, y, *, devices):
    """`jax.pmap`, by now a wrapper of `jit` and `shard_map`; its leading axis of devices is made in each call."""
    x, y = (array.reshape(devices, -1, array.shape[-1]) for array in (x, y))
    return mapped_step(state, x, y)


@workload(
    inputs=divided_training,
    params={
        "devices": levels(quick=2, full=(4, 8), by_device={"gpu": 8, "tpu": 8}),
        "width": levels(quick=256, by_device={"gpu": 4096, "tpu": 4096}),
    },
    reference=step_in_numpy,
    cost=divided_step_cost,
    needs=Needs(devices=lambda *, devices: devices),
    state=State(carry={"state": 0}),
    modes=("jit",),
    implementation="automatic",
    compiles=1,
    level="full",
)
def fsdp_step(state, x, y, *, devices):
    """The same step with weights and momentum divided too: state, two (rows, width) -> state, loss.

    Source: Zhao et al., PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel, 2023.
    """
    loss, gradient = jax.value_and_grad(loss_of)(state[0], x, y)
    return placed(updated(state, gradient), devices, SPLIT), loss


@fsdp_step.implementation(name="shard_map")
def fsdp_by_shard_map(state, x, y, *, devices):
    """`jax.shard_map`: gathers the weights, and each device keeps its part of the summed gradient."""

    def local_loss(parts, x, y):
        # The derivative of a gather is the scattered sum.
        weights = [jax.lax.all_gather(part, AXIS, tiled=True) for part in parts]
        return loss_of(weights, x, y) / devices

    def local_step(state, x, y):
        loss, gradient = jax.value_and_grad(local_loss)(state[0], x, y)
        weights, velocity = updated(state, gradient)
        return (weights, velocity), jax.lax.psum(loss, AXIS)

    return jax.shard_map(
        local_step,
        mesh=mesh_of(devices),
        in_specs=(SPLIT, SPLIT, SPLIT),
        out_specs=(SPLIT, WHOLE),
        check_vma=False,  # as above
    )(state, x, y)


def divided_layer(key, *, width, devices):
    """(ROWS, width) on every device; (width, EXPANSION * width) divided by columns, and its like by rows."""
    of_x, of_a, of_b = jax.random.split(key, 3)
    hidden = EXPANSION * width
    return (
        placed(jax.random.normal(of_x, (ROWS, width)), devices, WHOLE),
        placed(jax.random.normal(of_a, (width, hidden)) / np.sqrt(width), devices, PartitionSpec(None, AXIS)),
        placed(jax.random.normal(of_b, (hidden, width)) / np.sqrt(hidden), devices, SPLIT),
    )


def layer_cost(*, width, devices):
    """Two products; input and output are read and written by each device, the two divided matrices read once."""
    hidden = EXPANSION * width
    moved = 2 * (devices * ROWS * width + width * hidden)
    return Cost(flops=4 * ROWS * width * hidden, bytes=moved * itemsize("float32"))


@workload(
    inputs=divided_layer,
    params={
        "devices": levels(quick=2, full=(4, 8), by_device={"gpu": 8, "tpu": 8}),
        "width": levels(quick=256, by_device={"gpu": 8192, "tpu": 8192}),
    },
    reference=lambda x, a, b: np.maximum(x @ a, 0) @ b,
    cost=layer_cost,
    needs=Needs(devices=lambda *, devices: devices),
    modes=("jit",),
    implementation="automatic",
    compiles=1,
    level="full",
)
def tensor_parallel_matmul(x, a, b, *, devices):
    """Two products with a ReLU between, their matrices divided among devices: (128, width) -> (128, width).

    Source: Shoeybi et al., Megatron-LM, 2019, section 3.
    """
    return placed(jax.nn.relu(x @ a) @ b, devices, WHOLE)


@tensor_parallel_matmul.implementation(name="shard_map")
def layer_by_shard_map(x, a, b, *, devices):
    """`jax.shard_map`: each device's columns and rows, one sum over devices at the end."""

    def local(x, a, b):
        return jax.lax.psum(jax.nn.relu(x @ a) @ b, AXIS)

    specs = (WHOLE, PartitionSpec(None, AXIS), SPLIT)
    return jax.shard_map(local, mesh=mesh_of(devices), in_specs=specs, out_specs=WHOLE)(x, a, b)
