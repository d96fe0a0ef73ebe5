"""Small changes of arguments: an output that is an argument one step later is compared by its change, too.

The error of such an output is relative to its largest entry, so that a step of an optimiser can be lost in the
tolerance. What is compared in addition is the *share* of the reference's update that a variant makes: 1 is all of it,
0 is a frozen output, -1 a reversed step. The share is a projection: (new - old) of the variant on (new - old) of the
reference. Rounding, and the few entries whose sign rounding turns, as in the first step of Adam, hardly change it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import jax
import numpy

from jaxmeter.harness.probes.conditioning import as_array, find_scale, in_blocks
from jaxmeter.harness.probes.evaluation import find_unit, name_format
from jaxmeter.harness.probes.verdict import FACTOR

ALLOWED = 0.5
"""How far the share may be from 1: half of what a frozen update has. Of the first step of Adam in bfloat16, rounding
turns the sign of some hundredths of the entries, each of which counts twice."""

LEAST_ENTRIES = 16
"""Of fewer entries, two signs that rounding turns are a large part of an update."""

NARROW_BYTES = 2
"""Of an entry: an update of such weights is often smaller than half a unit in the last place."""

SAMPLE = 64
"""Entries by which the argument that an output follows is chosen among those of its shape and dtype."""


@dataclass(frozen=True)
class Update:
    """The change of an argument that an output is.

    Args:
      old: The argument.
      share: How much of the reference's change the variant makes; None where the change is as small as rounding.
      is_equal: Whether the reference gives the argument as it was.
    """

    old: Any
    share: float | None
    is_equal: bool = False

    @property
    def error(self) -> float:
        """How far the share is from 1."""
        return 0.0 if self.share is None else abs(self.share - 1)

    @property
    def is_suspect(self) -> bool:
        """Whether the variant does not make the reference's change."""
        return not self.error <= ALLOWED


class Olds:
    """Arrays that a call begins with, of which outputs can be updates."""

    def __init__(self, leaves: Iterable[Any]) -> None:
        """Group the floating arrays by shape and dtype."""
        self._leaves: dict[Any, list[Any]] = {}
        self._samples: dict[int, Any] = {}
        for leaf in leaves:
            is_floating = isinstance(leaf, jax.Array | numpy.ndarray) and name_format(leaf.dtype) is not None
            if is_floating and leaf.size and _is_readable(leaf):
                self._leaves.setdefault((tuple(leaf.shape), str(leaf.dtype)), []).append(leaf)

    def find_update(self, got: Any, want: Any, tolerance: float) -> Update | None:
        """Return what an output changes of an argument; None where it is no small change of any.

        A change is small where an output that stays what the argument is would be within its tolerance.

        Args:
          got, want: NumPy arrays of one shape, the variant's and the reference's.
          tolerance: What the formats of the output allow, relative to its largest entry.
        """
        fitting = self._leaves.get((got.shape, str(got.dtype)), ())
        if got.size < LEAST_ENTRIES or not fitting:
            return None
        sample = _take_sample(want)
        distances = [_find_distance(self._sample(leaf), sample) for leaf in fitting]
        nearest = int(numpy.argmin(distances))
        scale = find_scale(want) if distances[nearest] < math.inf else 0.0
        if not distances[nearest] <= tolerance * scale or not _is_readable(fitting[nearest]):
            return None
        return _measure(fitting[nearest], got, want, tolerance * scale)

    def _sample(self, leaf: Any) -> Any:
        if id(leaf) not in self._samples:
            self._samples[id(leaf)] = _take_sample(as_array(leaf))
        return self._samples[id(leaf)]


def find_share(change: Any, old: Any, want: Any) -> float:
    """How much of the change from old to want a change makes, itself given as (to, from)."""
    to, begin = change
    along = whole = 0.0
    for _, (new, before, wanted, previous) in in_blocks(to, begin, want, old):
        step = wanted - previous
        along += _multiply(new - before, step)
        whole += _multiply(step, step)
    return along / whole if whole else math.nan


def _measure(old: Any, got: Any, want: Any, most: float) -> Update | None:
    before = as_array(old)
    along = whole = rounding = largest = 0.0
    unit = find_unit(got.dtype)
    for _, (mine, wanted, previous) in in_blocks(got, want, before):
        step = wanted - previous
        largest = max(largest, float(numpy.abs(step).max()))
        if not largest <= most:  # or no number
            return None
        along += _multiply(mine - previous, step)
        whole += _multiply(step, step)
        # A unit in the last place of each entry.
        units = numpy.ldexp(unit, numpy.frexp(numpy.abs(wanted).astype("float64"))[1] - 1)
        rounding += float((units * units).sum())
    if not whole:
        # Nothing is updated; or, in a narrow format, less than it can hold.
        return Update(old, None, is_equal=True) if got.dtype.itemsize <= NARROW_BYTES else None
    is_lost = whole < FACTOR**2 * rounding
    return Update(old, None if is_lost else along / whole)


def _multiply(left: Any, right: Any) -> float:
    with numpy.errstate(over="ignore", invalid="ignore"):
        return float((left * numpy.conj(right)).real.sum())


def _is_readable(leaf: Any) -> bool:
    return not isinstance(leaf, jax.Array) or (leaf.is_fully_addressable and not leaf.is_deleted())


def _take_sample(array: Any) -> Any:
    flat = array.reshape(-1) if array.flags.c_contiguous else array.flat
    places = numpy.linspace(0, array.size - 1, min(SAMPLE, array.size)).astype(int)
    return next(in_blocks(numpy.asarray(flat[places])))[1][0]


def _find_distance(left: Any, right: Any) -> float:
    with numpy.errstate(invalid="ignore", over="ignore"):
        distance = float(numpy.abs(left - right).max())
    return distance if math.isfinite(distance) else math.inf
