"""A program that the check is tried on: a function, its arguments, and what its result should be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy

from jaxmeter.harness.programs.arguments import widest


@dataclass(frozen=True)
class Program:
    """One program.

    Args:
      make: A `jax.random.key` -> its arguments.
      reference: The arguments in float64 -> the trusted result; by default the function itself in float64.
      x64: Whether it computes in float64.
      tolerance, compare: As a suite declares them.
      update_faults: By name, the function with a fault that is smaller than the tolerance, in what it updates.
    """

    name: str
    function: Callable[..., Any]
    make: Callable[[Any], tuple[Any, ...]]
    reference: Callable[..., Any] | None = None
    x64: bool = False
    tolerance: float | None = None
    compare: Callable[..., Any] | None = None
    update_faults: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    def find_reference(self, args: tuple[Any, ...]) -> Any:
        """The trusted result as NumPy arrays."""
        wide = jax.tree.map(widest, args)
        with jax.enable_x64(True):
            if self.reference is not None:
                return jax.tree.map(numpy.asarray, self.reference(*wide))
            return jax.tree.map(_as_numpy, jax.block_until_ready(self.function(*wide)))


def _as_numpy(leaf: Any) -> Any:
    is_key = jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return numpy.asarray(jax.random.key_data(leaf) if is_key else leaf)


@contextmanager
def in_precision(*, x64: bool) -> Iterator[None]:
    """JAX's 64-bit mode on or off."""
    with jax.enable_x64(x64):
        yield


def normal(*shapes: tuple[int, ...], dtype: str = "float32") -> Callable[[Any], tuple[Any, ...]]:
    """Makes normal numbers of these shapes."""

    def make(key: Any) -> tuple[Any, ...]:
        keys = jax.random.split(key, len(shapes))
        return tuple(jax.random.normal(each, shape, dtype) for each, shape in zip(keys, shapes, strict=True))

    return make
