"""Columns of numbers in which the events of a capture are collected, and intervals of time as arrays."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import TypeAlias

import numpy
from numpy.typing import NDArray

from jaxmeter.harness.traces.xplane import CaptureError

Times = NDArray[numpy.int64]

Intervals = tuple[Times, Times]
"""Starts and ends, each of shape (n,)."""

PART = 100_000
"""Intervals that are shared out at a time, and more where none of them ends before the next begins."""

NONE: Intervals = (numpy.empty(0, numpy.int64), numpy.empty(0, numpy.int64))


def unite(intervals: Intervals) -> Intervals:
    """Return the union: sorted, disjoint, without empty ones."""
    starts, ends = intervals
    kept = ends > starts
    starts, ends = starts[kept], ends[kept]
    if not len(starts):
        return NONE
    order = numpy.argsort(starts, kind="stable")
    starts, ends = starts[order], numpy.maximum.accumulate(ends[order])
    first = numpy.concatenate(([True], starts[1:] > ends[:-1]))
    last = numpy.concatenate((first[1:], [True]))
    return starts[first], ends[last]


def join(*parts: Intervals) -> Intervals:
    """Return all of them, one behind the other."""
    return numpy.concatenate([starts for starts, _ in parts]), numpy.concatenate([ends for _, ends in parts])


def clip(intervals: Intervals, low: int, high: int) -> Intervals:
    """Return what of them lies inside a window."""
    starts, ends = numpy.maximum(intervals[0], low), numpy.minimum(intervals[1], high)
    kept = ends > starts
    return starts[kept], ends[kept]


def subtract(united: Intervals, others: Intervals) -> Intervals:
    """Return what of a union lies outside another union."""
    if not len(united[0]) or not len(others[0]):
        return united
    # Every edge of both, in order; a piece between two edges is inside or outside each of them as a whole.
    edges = numpy.unique(numpy.concatenate((*united, *others)))
    starts, ends = edges[:-1], edges[1:]
    kept = _inside(starts, united) & ~_inside(starts, others)
    return unite((starts[kept], ends[kept]))


def measure(united: Intervals) -> int:
    """Return the length of a union, in picoseconds."""
    return int((united[1] - united[0]).sum())


def covered(united: Intervals, starts: Times, ends: Times) -> Times:
    """Return how much of each of some windows a union covers, in picoseconds."""
    return _length_until(united, ends) - _length_until(united, starts)


def share_equally(intervals: Intervals) -> NDArray[numpy.float64]:
    """Return each interval's share of their union: an instant is divided equally among those that are active then.

    Returns:
      Picoseconds, shape (n,); they add up to the length of the union.
    """
    starts, ends = intervals
    order = numpy.argsort(starts)
    shares = numpy.zeros(len(starts))
    for low, high in _list_parts(starts, ends, order):  # a large capture has room for one
        part = order[low:high]
        shares[part] = _share_part(starts[part], ends[part])
    return shares


def _list_parts(starts: Times, ends: Times, order: Times) -> Iterator[tuple[int, int]]:
    """Divide ordered intervals where nothing is active, about every PART of them."""
    begun, reached = 0, numpy.iinfo(numpy.int64).min
    for low in range(0, len(order), PART):
        part = order[low : low + PART]
        until = numpy.maximum.accumulate(numpy.concatenate(([reached], ends[part])))
        reached = until[-1]
        gaps = low + numpy.flatnonzero(starts[part] >= until[:-1])
        if len(gaps) and gaps[0] > begun:
            yield begun, int(gaps[0])
            begun = int(gaps[0])
    yield begun, len(order)


def _share_part(starts: Times, ends: Times) -> NDArray[numpy.float64]:
    edges, places = numpy.unique(numpy.concatenate((starts, ends)), return_inverse=True)
    if len(edges) < 2:
        return numpy.zeros(len(starts))
    begun, ended = places[: len(starts)], places[len(starts) :]
    changes = numpy.bincount(begun, minlength=len(edges)) - numpy.bincount(ended, minlength=len(edges))
    parts = numpy.diff(edges) / numpy.maximum(numpy.cumsum(changes)[:-1], 1)
    until = numpy.concatenate(([0.0], numpy.cumsum(parts)))
    shared: NDArray[numpy.float64] = until[ended] - until[begun]
    return shared


def _inside(points: Times, united: Intervals) -> NDArray[numpy.bool_]:
    place = numpy.searchsorted(united[0], points, side="right") - 1
    inside: NDArray[numpy.bool_] = (place >= 0) & (points < united[1][place])
    return inside


def _length_until(united: Intervals, points: Times) -> Times:
    """How much of a union lies before each point."""
    starts, ends = united
    if not len(starts):
        return numpy.zeros(len(points), numpy.int64)
    lengths = numpy.concatenate(([0], numpy.cumsum(ends - starts)))
    place = numpy.searchsorted(starts, points, side="right")
    before = numpy.maximum(place - 1, 0)
    length: Times = lengths[before] + numpy.where(place > 0, numpy.minimum(points, ends[before]) - starts[before], 0)
    return length


Column: TypeAlias = "array[int]"

MOST_KEPT = 16_000_000
"""Events in memory, some 70 bytes each with all that is computed of them. Of a capture that has more, as those beyond
1 GB do, only the beginning is read, so that memory has a bound."""

KEPT_SHARE = 0.75
"""Of them, in order of time, that stay where there are more."""

CHECKED = 1 << 16
"""Events after which those in memory are counted."""

_NEVER = 1 << 127


class Collection:
    """Columns, and the time until which they hold all events.

    Args:
      events: How many there were, kept or not.
      until: When the events begin that are not kept, in picoseconds from the capture's origin.
      latest: When the last one begins that is not kept; None where all are.
    """

    def __init__(self) -> None:
        self.events = 0
        self.until = _NEVER
        self.latest: int | None = None
        self._tables: list[tuple[Column, ...]] = []

    def make_columns(self, typecodes: str) -> tuple[Column, ...]:
        """Return empty columns that belong together, of which the first is when an event begins.

        Args:
          typecodes: One of `array` for each.
        """
        columns = tuple(array(typecode) for typecode in typecodes)
        self._tables.append(columns)
        return columns

    def is_behind(self, start: int) -> bool:
        """Count an event; return whether it begins behind those that are kept.

        Raises:
          CaptureError: Too many events begin at one moment.
        """
        self.events += 1
        if not self.events % CHECKED:
            self._keep_most()
        if start < self.until:
            return False
        if self.latest is None or start > self.latest:
            self.latest = start
        return True

    def _keep_most(self) -> None:
        """Give up the latest events where there are too many in memory."""
        kept = sum(len(begun) for begun, *_ in self._tables)
        if kept <= MOST_KEPT:
            return
        moments = numpy.concatenate([begun for begun, *_ in self._tables])
        place = int(KEPT_SHARE * kept)
        moments.partition(place)
        until, self.latest = int(moments[place]), max(int(moments.max()), self.latest or 0)
        if until == moments.min():
            raise CaptureError("it is damaged: millions of its events begin at one moment")
        self.until = until
        del moments
        for begun, *others in self._tables:
            is_kept = numpy.array(begun) < until
            for column in (*others, begun):
                column[:] = array(column.typecode, numpy.array(column)[is_kept].tobytes())


def append(columns: tuple[Column, ...], *values: int) -> None:
    """Append one value to each column."""
    for column, value in zip(columns, values, strict=True):
        column.append(value)


def empty(columns: tuple[Column, ...]) -> None:
    """Give up all values."""
    for column in columns:
        del column[:]
