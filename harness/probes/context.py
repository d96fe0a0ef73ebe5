"""What a per-variant probe is, and what it may know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import numpy

from harness.declare.declaration import NoReference
from harness.declare.levels import call_with
from harness.declare.workload import Workload
from harness.machine.places import Backend
from harness.programs.modes import Carried, Clock, Prepared, Stage
from harness.record import Outcome, Param


@dataclass
class Context:
    """The case that a process works on.

    Args:
      arguments: The workload's inputs, positional.
      folder: Where a probe may keep files, the case's own; None where it may not.
      capacity_bytes: Memory of one device; None where nobody tells.
      index: Which of the processes of its kind this is, from 0.
      stage: Told when a probe begins with something that may take long by itself.
    """

    workload: Workload
    params: dict[str, Param]
    backend: Backend
    arguments: tuple[Any, ...]
    clock: Clock
    folder: Path | None
    capacity_bytes: int | None = None
    index: int = 0
    stage: Stage = lambda name: None

    @cached_property
    def reference(self) -> Any:
        """The trusted result, from the same inputs in NumPy's widest types; of a stream, one per call. None without."""
        reference = self.workload.declaration.reference
        if isinstance(reference, NoReference):
            return None
        workload = self.workload

        def once(*args: Any) -> Any:
            return call_with(reference, self.params, *jax.tree.map(widest, args))

        if not workload.declaration.stream:
            return once(*self.arguments)
        if not workload.declaration.state.carry:
            return [once(*item) for item in self.arguments]
        carried = Carried(once, workload.carried, begin=lambda args: args)
        return carried.over(self.arguments)

    def compiles(self, variant: str) -> int | None:
        """How many programs the variant may compile, as declared."""
        return self.workload.find_compile_budget(variant, self.params)


def as_numpy(leaf: Any) -> Any:
    """An array as NumPy's. A random key stays what it is: NumPy has no such thing."""
    if isinstance(leaf, jax.Array) and jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return leaf
    return numpy.asarray(leaf)


def widest(leaf: Any) -> Any:
    """An array as NumPy's widest of its kind: float64, int64, complex128, bool."""
    array = as_numpy(leaf)
    if not isinstance(array, numpy.ndarray) or array.dtype == bool:
        return array
    if jax.numpy.issubdtype(array.dtype, jax.numpy.complexfloating):
        return array.astype(numpy.complex128)
    if jax.numpy.issubdtype(array.dtype, jax.numpy.integer):
        return array.astype(numpy.int64)
    return array.astype(numpy.float64)


@dataclass(frozen=True)
class Probe:
    """One way of looking at one variant in a process that has prepared it.

    Args:
      kind: The kind of process it needs, see harness/messages.py.
      run: (variant's name, prepared, context) -> outcome. What it raises becomes a failed outcome.
      calls: Whether it calls the variant, which one that does not fit into memory cannot be.
    """

    name: str
    kind: str
    run: Callable[[str, Prepared, Context], Outcome]
    calls: bool = True
