"""Columns of numbers in which the events of a capture are collected, and a bound on how many there are."""

from __future__ import annotations

from array import array
from typing import TypeAlias

import numpy

from jaxmeter.harness.traces.xplane import CaptureError

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
