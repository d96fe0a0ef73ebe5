"""How far two results are apart: leaf by leaf, in blocks, so that a large result costs no copies of itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import numpy

from jaxmeter.harness.programs.arguments import widest
from jaxmeter.harness.record.wording import counted

BLOCK = 1 << 20
"""Entries that are widened at a time: 8 MB of float64."""


def relative_error(got: Any, want: Any, scale: float | None = None) -> tuple[float, tuple[int, ...]]:
    """Largest absolute difference over the reference's largest finite entry, and where it is.

    Args:
      got, want: Arrays of one shape, any; of any dtype, and widened block by block.
      scale: What the difference is relative to; by default the reference's largest entry.
    Returns:
      (error, index). Equal infinities agree, and so do two NaN; any other non-finite entry is an infinite error.
    """
    scale = find_scale(want) if scale is None else scale
    worst, place = 0.0, 0
    for start, (block, other) in in_blocks(got, want):
        difference = _find_differences(block, other, scale)
        index = int(difference.argmax())
        if difference[index] > worst:
            worst, place = float(difference[index]), start + index
    if got.size == 0:
        return 0.0, ()
    return worst, tuple(int(index) for index in numpy.unravel_index(place, want.shape))


def find_scale(want: Any) -> float:
    """The largest finite entry, by its size; 1 where that is 0 or there is none."""
    # Relative to the largest entry: next to a zero, any error looks huge.
    largest = 0.0
    for _, (block,) in in_blocks(want):
        with numpy.errstate(over="ignore"):
            sizes = numpy.abs(block)
        finite = sizes[numpy.isfinite(sizes)]
        largest = max(largest, float(finite.max()) if finite.size else 0.0)
    return largest or 1.0


def is_unknown(want: Any) -> bool:
    """Whether every entry is NaN, of at least one."""
    return bool(want.size) and all(bool(numpy.isnan(block).all()) for _, (block,) in in_blocks(want))


def _find_differences(got: Any, want: Any, scale: float) -> Any:
    same = (got == want) | (numpy.isnan(got) & numpy.isnan(want))
    with numpy.errstate(invalid="ignore", over="ignore"):
        difference = numpy.where(same, 0.0, numpy.abs(got - want) / scale)
    return numpy.where(numpy.isnan(difference), numpy.inf, difference)


def in_blocks(*arrays: Any) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Blocks of all arrays in C order, widened, with the number of entries before them."""
    # A reshape of what is not contiguous would copy the whole; slices of `flat` copy a block.
    flat = [array.reshape(-1) if array.flags.c_contiguous else array.flat for array in map(numpy.asarray, arrays)]
    for start in range(0, arrays[0].size, BLOCK):
        yield start, tuple(_widen(each[start : start + BLOCK]) for each in flat)


def _widen(block: Any) -> Any:
    return block.astype(numpy.int64) if block.dtype == bool else widest(block)


def pair(result: Any, reference: Any, name: str = "reference") -> list[tuple[str, Any, Any]] | str:
    """Leaves of result and reference next to each other with their path, or what does not fit.

    A list of scalars may stand for an array. The path is as Python would index the result; empty where it is one array.

    Args:
      name: What a person calls the reference.
    """
    got = [(jax.tree_util.keystr(path), as_array(leaf)) for path, leaf in jax.tree_util.tree_leaves_with_path(result)]
    want = [as_array(leaf) for leaf in jax.tree.leaves(reference)]
    if len(want) == 1 and len(got) != 1 and _may_be_rows([leaf for _, leaf in got], want[0]):
        got = [("", numpy.stack([leaf for _, leaf in got]))]
    if len(got) != len(want):
        return f"returned {counted(len(got), 'array')}, the {name} {len(want)}"
    for (path, mine), other in zip(got, want, strict=True):
        if mine.shape != other.shape:
            where = f" at output {path}" if path else ""
            return f"returned shape {mine.shape}{where}, the {name} {other.shape}"
    return [(path, mine, other) for (path, mine), other in zip(got, want, strict=True)]


def _may_be_rows(arrays: list[Any], whole: Any) -> bool:
    """Return whether arrays stand for the rows of one array: as many as it has, or scalars for one dimension."""
    if whole.ndim == 0 or {array.shape for array in arrays} != {whole.shape[1:]}:
        return False
    return len(arrays) == len(whole) or whole.ndim == 1


def as_array(leaf: Any) -> Any:
    """A result as NumPy's array; of a random key its words."""
    if isinstance(leaf, jax.Array) and jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return numpy.asarray(leaf)


def write_entry(array: Any, place: tuple[int, ...]) -> str:
    """One entry, in seven digits."""
    return f"{widest(array[place]).item():.7g}"
