"""Sharding: the cost of dividing a step among devices, by the compiler and by hand.

On a CPU all devices share the same cores, so there this suite checks programs and measures overhead, not speedup.
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
"""Rows of the batch: in total if scaling is strong, for each device if it is weak."""

RATE = 0.25
"""Learning rate times width: so small that the loss falls and repeated steps stay finite (tried up to width 2048)."""

MOMENTUM = 0.9
"""Usual momentum of stochastic gradient descent: Sutskever et al. 2013."""

EXPANSION = 4
"""Width of a transformer's hidden layer divided by the width of its input: Vaswani et al. 2017, section 3.3."""

ROWS = 128
"""Rows of the tensor-parallel layer's input."""


def rows(devices, scaling):
    """Return the number of rows of the whole batch."""
    return BATCH * devices if scaling == "weak" else BATCH


def training(key, *, width, devices, scaling="strong", spec=WHOLE):
    """Return the state and a sharded batch, two arrays (rows, width).

    The state is weights and momentum, LAYERS times (width, width) each. By default each device has a copy.
    """
    *keys, of_x, of_y = jax.random.split(key, LAYERS + 2)
    weights = tuple(jax.random.normal(subkey, (width, width)) * np.sqrt(2 / width) for subkey in keys)
    state = weights, tuple(jnp.zeros_like(w) for w in weights)
    batch = tuple(jax.random.normal(subkey, (rows(devices, scaling), width)) for subkey in (of_x, of_y))
    return placed(state, devices, spec), *placed(batch, devices, SPLIT)


def divided_training(key, *, width, devices):
    """Return the state and batch of `training`, with weights and momentum sharded too."""
    return training(key, width=width, devices=devices, spec=SPLIT)


def step_in_numpy(state, x, y):
    """Compute the step in NumPy."""
    weights, momentum = state
    layers = {f"Dense_{number}": {"kernel": w} for number, w in enumerate(weights)}
    passed = reference.forward(reference.mlp(layers), x)
    error = reference.output_of(passed) - y
    loss, slopes = 0.5 * np.sum(error**2) / len(x), reference.backward(passed, error / len(x))
    velocity = tuple(MOMENTUM * m + slopes[name]["kernel"] for name, m in zip(layers, momentum, strict=True))
    rate = RATE / x.shape[1]
    return (tuple(w - rate * v for w, v in zip(weights, velocity, strict=True)), velocity), loss


def step_cost(*, width, devices, scaling, copies):
    """Count forward and backward products, and bytes of weights, momentum (both read and written) and batch (read).

    Losses are not counted. Bytes are the sum over all devices: each device reads and writes its own copy of a
    replicated array.

    Args:
      copies: Copies of weights and momentum: the number of devices, or 1 if they are sharded.
    """
    batch, products = rows(devices, scaling), 3 * LAYERS - 1  # the first layer's input needs no gradient
    moved = copies * 4 * LAYERS * width**2 + 2 * batch * width
    return Cost(flops=2 * products * batch * width**2, bytes=moved * itemsize("float32"))


def replicated_step_cost(*, width, devices, scaling):
    """Return the cost of a step with a copy of weights and momentum on each device."""
    return step_cost(width=width, devices=devices, scaling=scaling, copies=devices)


def divided_step_cost(*, width, devices):
    """Return the cost of a step with sharded weights and momentum; gathered weights are not counted."""
    return step_cost(width=width, devices=devices, scaling="strong", copies=1)


def loss_of(weights, x, y):
    """Return half the squared error, summed over each row and averaged over the rows."""
    for w in weights[:-1]:
        x = jax.nn.relu(x @ w)
    return 0.5 * jnp.sum((x @ weights[-1] - y) ** 2) / len(x)


def updated(state, gradient):
    """Update the state by stochastic gradient descent with momentum."""
    weights, momentum = state
    velocity = jax.tree.map(lambda m, g: MOMENTUM * m + g, momentum, gradient)
    rate = RATE / weights[0].shape[-1]
    return jax.tree.map(lambda w, v: w - rate * v, weights, velocity), velocity


def step_on_one_of_many(state, x, y):
    """Run the part of the step on one device: compute its rows, then average over the devices."""
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
    """Training step of an MLP with a sharded batch: state, two (rows, width) -> state, loss.

    Source: Goyal et al., Accurate, Large Minibatch SGD, 2017.
    """
    loss, gradient = jax.value_and_grad(loss_of)(state[0], x, y)
    return placed(updated(state, gradient), devices, WHOLE), loss


@data_parallel_step.implementation(name="shard_map")
def by_shard_map(state, x, y, *, devices):
    """`jax.shard_map` over the rows, with an explicit mean of loss and gradient."""
    # Without the check, JAX differentiates the loss of each device. With the check, JAX itself sums over devices.
    return jax.shard_map(
        step_on_one_of_many,
        mesh=mesh_of(devices),
        in_specs=(WHOLE, SPLIT, SPLIT),
        out_specs=(WHOLE, WHOLE),
        check_vma=False,
    )(state, x, y)


@data_parallel_step.implementation(name="pmap", modes=("mixed",))
def by_pmap(state, x, y, *, devices):
    """`jax.pmap`, now a wrapper of `jit` and `shard_map`; each call creates its leading axis of devices."""
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
    """Training step with sharded weights, momentum and batch: state, two (rows, width) -> state, loss.

    Source: Zhao et al., PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel, 2023.
    """
    loss, gradient = jax.value_and_grad(loss_of)(state[0], x, y)
    return placed(updated(state, gradient), devices, SPLIT), loss


@fsdp_step.implementation(name="shard_map")
def fsdp_by_shard_map(state, x, y, *, devices):
    """`jax.shard_map` that gathers the weights; each device keeps its shard of the summed gradient."""

    def local_loss(parts, x, y):
        # The derivative of an all-gather is a reduce-scatter.
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
        check_vma=False,  # for the reason given in `by_shard_map`
    )(state, x, y)


def divided_layer(key, *, width, devices):
    """Return a replicated (ROWS, width) and two sharded matrices.

    (width, EXPANSION * width) is sharded by columns, (EXPANSION * width, width) by rows.
    """
    of_x, of_a, of_b = jax.random.split(key, 3)
    hidden = EXPANSION * width
    return (
        placed(jax.random.normal(of_x, (ROWS, width)), devices, WHOLE),
        placed(jax.random.normal(of_a, (width, hidden)) / np.sqrt(width), devices, PartitionSpec(None, AXIS)),
        placed(jax.random.normal(of_b, (hidden, width)) / np.sqrt(hidden), devices, SPLIT),
    )


def layer_cost(*, width, devices):
    """Count two products; each device reads the input and writes the output, the sharded matrices are read once."""
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
    """Two products with a ReLU between them and sharded matrices: (128, width) -> (128, width).

    Source: Shoeybi et al., Megatron-LM, 2019, section 3.
    """
    return placed(jax.nn.relu(x @ a) @ b, devices, WHOLE)


@tensor_parallel_matmul.implementation(name="shard_map")
def layer_by_shard_map(x, a, b, *, devices):
    """`jax.shard_map`: columns and rows of each device, with one sum over devices at the end."""

    def local(x, a, b):
        return jax.lax.psum(jax.nn.relu(x @ a) @ b, AXIS)

    specs = (WHOLE, PartitionSpec(None, AXIS), SPLIT)
    return jax.shard_map(local, mesh=mesh_of(devices), in_specs=specs, out_specs=WHOLE)(x, a, b)
