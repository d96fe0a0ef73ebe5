"""One-dimensional device mesh: suites that use several devices shard their arrays over it."""

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

AXIS = "devices"
"""Name of the only mesh axis."""

SPLIT, WHOLE = PartitionSpec(AXIS), PartitionSpec()
"""SPLIT shards the first axis over the devices; WHOLE replicates an array on each device."""


def mesh_of(devices):
    """Return a one-dimensional mesh of the first `devices` devices."""
    return Mesh(np.array(jax.devices()[:devices]), (AXIS,))


def placed(tree, devices, spec):
    """Return the arrays with a sharding over the devices; inside `jit`, constrain the compiler to this sharding."""
    return jax.tree.map(lambda x: jax.lax.with_sharding_constraint(x, NamedSharding(mesh_of(devices), spec)), tree)
