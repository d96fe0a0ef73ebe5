"""A case's inputs, which the first process that makes them keeps for those that follow.

On two cores a process spent 0.2 s here, most of it on the way through JAX to their programs, though these come from the
run's cache; where it reads them, 0.04 to 0.07 s. Every process of a case has the same inputs either way.
"""

from __future__ import annotations

import pickle
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax
import numpy

from jaxmeter.harness.declare.workload import Workload
from jaxmeter.harness.programs.arguments import make_inputs, size_bytes
from jaxmeter.harness.programs.older_jax import is_committed
from jaxmeter.harness.record import Param, write_bytes

LARGEST_BYTES = 64 * 2**20
"""Of a case's inputs; larger ones are made by each process, so that all that a run keeps takes little of the disk."""


def find_inputs(workload: Workload, params: dict[str, Param], kept: Path) -> tuple[Any, ...]:
    """The inputs of a case: those that are kept, else made and kept.

    Args:
      kept: The case's own file, in a folder that only the run's processes write.
    """
    if kept.exists():
        return _read(kept)
    made = make_inputs(workload, params)
    if size_bytes(made) <= LARGEST_BYTES and all(map(_is_plain, jax.tree.leaves(made))):
        _keep(made, kept)
    return made


def _is_plain(leaf: Any) -> bool:
    """Whether it is the same when it is read again: an array that nothing binds to a device, and no random key.

    What stays on the host is not: where in memory its numbers begin may be what is measured.
    """
    return (
        isinstance(leaf, jax.Array)
        and not is_committed(leaf)
        and not leaf.aval.weak_type
        and not jax.numpy.issubdtype(leaf.dtype, jax.dtypes.extended)
    )


def _keep(made: tuple[Any, ...], kept: Path) -> None:
    """Writes them, if it can: a suite's own tree may refuse NumPy's arrays, or hold a local function."""
    with suppress(Exception):
        write_bytes(kept, pickle.dumps(jax.tree.map(numpy.asarray, made), protocol=5), lasting=False)


def _read(kept: Path) -> tuple[Any, ...]:
    """Reads them into buffers of JAX's own: on a CPU it would use NumPy's as they are, and could not donate those.

    An array that is there several times, as in each tuple of a stream, is still one.
    """
    arrays, tree = jax.tree.flatten(pickle.loads(kept.read_bytes()))  # a process of this run has written it
    distinct = list({id(array): array for array in arrays}.values())
    copied = jax.block_until_ready(jax.jit(lambda leaves: [jax.numpy.copy(leaf) for leaf in leaves])(distinct))
    places = {id(array): place for place, array in enumerate(distinct)}
    return tuple(jax.tree.unflatten(tree, [copied[places[id(array)]] for array in arrays]))
