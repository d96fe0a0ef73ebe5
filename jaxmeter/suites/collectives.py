"""Collectives: how fast devices exchange data, by operation and size, reported as in nccl-tests.

On a CPU the devices share the same cores and one memory: there the suite checks programs and measures overhead, not a
network.
"""

import jax
import jax.numpy as jnp
import numpy as np

from jaxmeter import Answer, Cost, Needs, itemsize, levels, workload
from jaxmeter.suites.meshes import AXIS, SPLIT, WHOLE, mesh_of, placed


def messages(key, *, operation, devices, n):
    """Return a standard normal row for each device, (devices, n); for all_gather (devices, n / devices)."""
    length = n // devices if operation == "all_gather" else n
    return placed(jax.random.normal(key, (devices, length)), devices, SPLIT)


def in_numpy(x, *, operation, devices):
    """Return the result of each operation, with NumPy on the whole array."""
    if operation in ("all_reduce", "reduce_scatter"):
        return x.sum(axis=0)
    if operation == "all_gather":
        return x.reshape(-1)
    if operation == "all_to_all":
        return x.reshape(devices, devices, -1).swapaxes(0, 1).reshape(x.shape)
    return np.roll(x, 1, axis=0)


def traffic(*, operation, devices, n):
    """Return algorithm and bus bytes as nccl-tests counts them, and the memory traffic of all devices together.

    n is the larger of the numbers that a device sends and receives; so is S in nccl-tests.
    Source: NVIDIA nccl-tests, doc/PERFORMANCE.md; for all_to_all and permute src/alltoall.cu and src/sendrecv.cu.
    """
    message = n * itemsize("float32")
    part = (devices - 1) / devices
    factor = {"all_reduce": 2 * part, "permute": 1}.get(operation, part)
    touched = {"all_gather": devices + 1, "reduce_scatter": devices + 1}.get(operation, 2 * devices)
    return Cost(
        flops=(devices - 1) * n if operation in ("all_reduce", "reduce_scatter") else None,
        bytes=touched * message,
        message_bytes=message,
        bus_bytes=factor * message,
    )


@workload(
    inputs=messages,
    params={
        "operation": levels(quick="all_reduce", full=("reduce_scatter", "all_gather", "all_to_all", "permute")),
        "devices": levels(quick=8, full=(2, 4), by_device={"gpu": (2, 4), "tpu": (2, 4)}),
        "n": levels(quick=2**18, full=(2**12, 2**22), by_device={"gpu": (2**22, 2**26), "tpu": (2**22, 2**26)}),
    },
    reference=in_numpy,
    cost=traffic,
    needs=Needs(devices=lambda *, devices: devices),
    modes=("jit",),
    implementation="shard_map",
    compiles=1,
    level="default",
    answer=Answer("How fast do devices exchange data?", "shard_map:jit", metric="bus_bandwidth"),
)
def collective(x, *, operation, devices):
    """Sum, gather, scatter, exchange or shift of the devices' rows, (devices, n) -> (n,) or (devices, n).

    Collectives of `jax.lax` in `jax.shard_map`. Source: NVIDIA nccl-tests, doc/PERFORMANCE.md.
    """

    def local(row):  # (1, length)
        if operation == "all_reduce":
            return jax.lax.psum(row[0], AXIS)
        if operation == "all_gather":
            return jax.lax.all_gather(row[0], AXIS, tiled=True)
        if operation == "reduce_scatter":
            return jax.lax.psum_scatter(row[0], AXIS, tiled=True)
        if operation == "all_to_all":
            return jax.lax.all_to_all(row, AXIS, split_axis=1, concat_axis=1, tiled=True)
        return jax.lax.ppermute(row, AXIS, [(i, (i + 1) % devices) for i in range(devices)])

    return jax.shard_map(
        local,
        mesh=mesh_of(devices),
        in_specs=SPLIT,
        out_specs=result_spec(operation),
        check_vma=False,  # it cannot infer that gathered data are the same on all devices
    )(x)


@collective.implementation
def automatic(x, *, operation, devices):
    """Sum, reshape, transpose or roll of the whole array with a sharding of its result: collectives by the compiler."""
    if operation in ("all_reduce", "reduce_scatter"):
        result = x.sum(axis=0)
    elif operation == "all_gather":
        result = x.reshape(-1)
    elif operation == "all_to_all":
        result = x.reshape(devices, devices, -1).swapaxes(0, 1).reshape(x.shape)
    else:
        result = jnp.roll(x, 1, axis=0)
    return placed(result, devices, result_spec(operation))


def result_spec(operation):
    """Return the sharding of the result: whole on each device, or a part on each."""
    return WHOLE if operation in ("all_reduce", "all_gather") else SPLIT
