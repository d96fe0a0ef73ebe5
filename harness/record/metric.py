"""What a metric is: a named result, how it is written and compared, and how several processes become one number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.record.reading import Derived, Readable


class Unit(StrEnum):
    """What a metric's numbers count. Records hold these units; scaling happens when shown."""

    SECONDS = "s"
    BYTES = "B"
    COUNT = "count"
    FLOP = "FLOP"
    RATIO = "ratio"
    SHARE = "share"
    RELATIVE_ERROR = "relative error"
    LOG_RATIO = "log ratio"
    EXPONENT = "exponent"
    FLOP_PER_SECOND = "FLOP/s"
    BYTES_PER_SECOND = "B/s"


class Direction(StrEnum):
    """Which way is better."""

    LOWER = "lower"
    HIGHER = "higher"
    NEITHER = "neither"


class Summary(StrEnum):
    """How the values of several processes become one number."""

    LAUNCHES = "mean over launches"
    """With a t interval that is widened for every look at the launches: their number follows from what they showed.
    Of ratios and times the geometric mean, of logarithms the mean."""

    PROCESSES = "mean over processes"
    """The same, but their number was fixed beforehand."""

    MEDIAN = "median"
    FIRST = "the first"
    """Of what is the same in all processes."""

    LARGEST = "the largest"
    """Of what should be the same in all processes, or should not be at all."""


class Family(StrEnum):
    """Metrics that one table shows together: it has a column for each, in the order of the registry."""

    PROGRAM = "program"
    """What the compiler made of a variant, level by level."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A named result: measured by a probe, derived from others, or the growth of another over a sweep.

    Args:
      title: What a sentence calls it, such as `first call`.
      column: The heading of its column where that is not the title: there, the table says more.
      detail: What stands small below that heading.
      exact: Whether it follows from the program alone, so that two equal programs have the same in every process.
      summary: How several processes become one number.
      probe: The probe that measures it.
      derive: The function that derives it from what probes have measured.
      growth_of: The metric whose exponent over the values of `n` it is; such a metric is of a workload, not of a case.
      signed: Whether it may be below 0, such as a saving.
      family: The table that has a column for it because it is here.
    """

    name: str
    title: str
    unit: Unit
    direction: Direction
    definition: str
    exact: bool = False
    summary: Summary = Summary.FIRST
    probe: str | None = None
    derive: Callable[[Readable], Derived] | None = None
    growth_of: str | None = None
    column: str = ""
    detail: str = ""
    signed: bool = False
    family: Family | None = None

    @property
    def heading(self) -> str:
        """The heading of its column."""
        return self.column or f"{self.title[:1].upper()}{self.title[1:]}"
