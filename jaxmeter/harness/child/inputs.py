"""The inputs of a case. The first process that makes them saves them for later processes.

Making inputs took 0.2 s per process on two cores, most of it in JAX's own code, even with programs from the run's
cache. Reading saved inputs takes 0.04 to 0.07 s. Either way, every process of a case has the same inputs.
"""

from __future__ import annotations

import pickle
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy

from jaxmeter.harness.declare.workload import Workload
from jaxmeter.harness.programs.arguments import draw_inputs, place_inputs, size_bytes
from jaxmeter.harness.programs.older_jax import copy_array, is_committed
from jaxmeter.harness.programs.traps import list_wide
from jaxmeter.harness.record import Param, write_bytes

LARGEST_BYTES = 64 * 2**20
"""Of a case's inputs; larger ones are made by each process, so that all that a run keeps takes little of the disk."""


@dataclass(frozen=True)
class Inputs:
    """The inputs of a case.

    Args:
      arguments: Positional arguments; for a stream, a tuple of argument tuples.
      wide: Dtypes of the suite's NumPy arrays that JAX converts to narrower dtypes.
    """

    arguments: tuple[Any, ...]
    wide: tuple[str, ...]


def find_inputs(workload: Workload, params: dict[str, Param], kept: Path) -> Inputs:
    """Return the inputs of a case from its file, or make and save them.

    Args:
      kept: The file of the case, in a folder that only the run's processes write.
    """
    if kept.exists():
        return _read(kept)
    made = draw_inputs(workload, params)
    inputs = Inputs(place_inputs(workload, made), list_wide(made))
    if size_bytes(inputs.arguments) <= LARGEST_BYTES and all(map(_is_plain, jax.tree.leaves(inputs.arguments))):
        _keep(inputs, kept)
    return inputs


def _is_plain(leaf: Any) -> bool:
    """Return whether a saved leaf is the same when read: a jax.Array not committed to a device, and no random key.

    A NumPy array is not the same: the alignment of its memory can be the subject of the measurement.
    """
    return (
        isinstance(leaf, jax.Array)
        and not is_committed(leaf)
        and not leaf.aval.weak_type
        and not jax.numpy.issubdtype(leaf.dtype, jax.dtypes.extended)
    )


def _keep(inputs: Inputs, kept: Path) -> None:
    """Write the inputs, if possible: a suite's own tree may refuse NumPy arrays, or contain a local function."""
    with suppress(Exception):
        arrays = jax.tree.map(numpy.asarray, inputs.arguments)
        write_bytes(kept, pickle.dumps(Inputs(arrays, inputs.wide), protocol=5), lasting=False)


def _read(kept: Path) -> Inputs:
    """Read the inputs into JAX's own buffers: on a CPU, JAX would share NumPy's buffers and could not donate them.

    An array that occurs several times, as in each tuple of a stream, is copied once.
    """
    inputs: Inputs = pickle.loads(kept.read_bytes())  # a process of this run wrote the file
    arrays, tree = jax.tree.flatten(inputs.arguments)
    copied = {id(array): copy_array(array) for array in {id(array): array for array in arrays}.values()}
    arguments = jax.tree.unflatten(tree, [copied[id(array)] for array in arrays])
    return Inputs(tuple(arguments), inputs.wide)
