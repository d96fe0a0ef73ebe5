"""Where values lie on a table's common axis, as shares of its width."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

MARGIN = 0.04
"""Share of the width left free at both ends, so that no mark is cut."""


@dataclass(frozen=True)
class LogAxis:
    """A logarithmic axis from `low` to `high`, both > 0."""

    low: float
    high: float

    @classmethod
    def around(cls, values: Iterable[float]) -> LogAxis:
        """The axis that holds these values, and 1."""
        known = [value for value in values if 0 < value < math.inf]
        return cls(min([*known, 1.0]), max([*known, 1.0]))

    @classmethod
    def over(cls, values: Iterable[float]) -> LogAxis:
        """The axis that holds these values; of 1 alone where there is none."""
        known = [value for value in values if 0 < value < math.inf] or [1.0]
        return cls(min(known), max(known))

    def at(self, value: float) -> float:
        """The value's machine; values off the axis lie at the very edge."""
        if not self.low <= value <= self.high:
            return 0.0 if value < self.low else 1.0
        span = math.log(self.high) - math.log(self.low)
        share = (math.log(value) - math.log(self.low)) / span if span > 0 else 0.5
        return MARGIN + (1 - 2 * MARGIN) * share
