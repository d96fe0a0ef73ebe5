"""Floating entries moved by one unit in the last place: the smallest change of a program's inputs that there is."""

from __future__ import annotations

from typing import Any

import jax
import numpy

from jaxmeter.harness.probes.errors import BLOCK
from jaxmeter.harness.programs.older_jax import is_committed

MOVED = ("float32", "float64", "complex64", "complex128")
"""A unit in the last place of a 16-bit number is 0.1 to 0.8 %: what such a move causes would hide real faults."""


def is_moved(leaf: Any) -> bool:
    """Whether a leaf is an array whose entries are moved: of such a format, and all of it in this process."""
    if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable:
        return False
    # A captured constant may be of a type of JAX's own, which NumPy reads.
    return hasattr(leaf, "shape") and str(getattr(leaf, "dtype", "")) in MOVED


def move(array: Any, seed: tuple[int, ...]) -> Any:
    """A NumPy array whose entries are each moved by -1, 0 or +1 unit in the last place, drawn at random.

    Integers (0, 1, masks, one-hot, counters), infinities and NaN stay: a program may test for them. Numbers so large
    that their format has no others than integers are moved.

    Args:
      array: float32 or float64, or complex of these: real and imaginary parts are moved each by themselves.
    """
    random = numpy.random.default_rng(seed)
    moved = numpy.array(array, order="C")
    parts = moved.reshape(-1).view(moved.real.dtype)
    for start in range(0, parts.size, BLOCK):
        block = parts[start : start + BLOCK]
        directions = random.integers(-1, 2, block.size, dtype=numpy.int8)
        directions[is_kept(block)] = 0
        ends = numpy.array([0, numpy.inf, -numpy.inf], block.dtype)[directions]
        block[...] = numpy.where(directions == 0, block, numpy.nextafter(block, ends))
    return moved


def is_kept(array: Any) -> Any:
    """Which entries stay what they are: integers, unless they are too large for others, and what has no neighbours."""
    info = numpy.finfo(array.dtype)
    sizes = numpy.abs(array)
    with numpy.errstate(invalid="ignore"):
        is_integer = (array == numpy.round(array)) & (sizes < 2.0**info.nmant)
    return is_integer | ~(sizes < info.max)


def move_tree(tree: Any, seed: tuple[int, ...]) -> Any:
    """All floating arrays of a tree moved, each where it is; any other leaf as it is."""
    leaves, form = jax.tree.flatten(tree)
    moved = [_move_leaf(leaf, (*seed, place)) if is_moved(leaf) else leaf for place, leaf in enumerate(leaves)]
    return jax.tree.unflatten(form, moved)


def _move_leaf(leaf: Any, seed: tuple[int, ...]) -> Any:
    moved = move(numpy.asarray(leaf), seed)
    if not isinstance(leaf, jax.Array):
        return moved if isinstance(leaf, numpy.ndarray) else moved[()]
    return jax.device_put(moved, leaf.sharding) if is_committed(leaf) else jax.numpy.asarray(moved)
