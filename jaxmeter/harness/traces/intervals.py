"""Intervals of time as arrays: union, difference, what lies inside a window. All in picoseconds, ends excluded."""

from __future__ import annotations

from collections.abc import Iterator

import numpy
from numpy.typing import NDArray

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
