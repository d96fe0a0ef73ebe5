"""Devices in a row: the mesh that suites of several devices divide arrays over."""

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

AXIS = "devices"
"""Name of the only mesh axis."""

SPLIT, WHOLE = PartitionSpec(AXIS), PartitionSpec()
"""The first axis divided among the devices; a copy on each."""


def mesh_of(devices):
    """The first devices in a row."""
    return Mesh(np.array(jax.devices()[:devices]), (AXIS,))


def placed(tree, devices, spec):
    """The same arrays, divided among devices; inside `jit` a demand on the compiler."""
    return jax.tree.map(lambda x: jax.lax.with_sharding_constraint(x, NamedSharding(mesh_of(devices), spec)), tree)
