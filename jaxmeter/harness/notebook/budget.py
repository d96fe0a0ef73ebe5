"""The time of one measurement: what is left of its limit, and what modes that nobody asked for may cost."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from jaxmeter.harness.plan.timing_process import count_passes
from jaxmeter.harness.programs.modes import Stages
from jaxmeter.harness.record import Settings

EXTRA_SHARE = 0.2
"""Share of the time limit for modes of a transformed callable that nobody asked for, all together."""

USUAL_LIMIT_S = 10.0
"""Limit that this share refers to where no limit is given. As given, steps of five libraries took 2 to 3 s on two
cores; with this share, small functions have all modes within 5 s."""

OPERATION_S = 0.03
"""About how long the first eager call of an operation takes, which compiles it: 20 to 40 ms on a CPU."""

FEWEST_BLOCKS = 6
"""Fewest passes for which time is kept: an interval over passes needs as many."""

CALLS_AROUND = 4
"""Calls before and after the passes: the first, those that warm up, and one of time until return."""

SHORT_S = 1.0
"""Timing of this length is begun whenever any time is left: it is shorter than what a limit is rounded to."""


@dataclass
class Budget:
    """The time limit of a measurement. The first compilation is not counted.

    Args:
      limit_s: As the user gives it.
      settings: How variants are timed.
    """

    limit_s: float
    settings: Settings
    _start: float = field(init=False)
    _excused_s: float = 0.0
    _extra_s: float = field(init=False)

    def __post_init__(self) -> None:
        self._start = time.monotonic()
        self._extra_s = EXTRA_SHARE * (self.limit_s if math.isfinite(self.limit_s) else USUAL_LIMIT_S)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the measurement began."""
        return time.monotonic() - self._start

    @property
    def left_s(self) -> float:
        """Seconds that are left; negative after the limit."""
        return self.limit_s + self._excused_s - self.elapsed_s

    @property
    def extra_s(self) -> float:
        """Seconds that are left for modes that nobody asked for."""
        return min(self._extra_s, self.left_s)

    def excuse(self, stages: Stages | None) -> None:
        """Count no time for these stages, if none were excused before."""
        if stages is not None and not self._excused_s:
            self._excused_s = sum(filter(None, (stages.trace_s, stages.lower_s, stages.compile_s)))

    def spend_extra(self, seconds: float) -> None:
        """Take seconds from those for modes that nobody asked for."""
        self._extra_s -= seconds

    def estimate_timing_s(self, calls_s: Sequence[float], blocks: int | None = None) -> float:
        """Return about how long it takes to time variants whose calls take so long.

        Args:
          blocks: Largest number of passes; by default that of the settings.
        """
        settings = self.settings if blocks is None else msgspec.structs.replace(self.settings, blocks=blocks)
        turns_s = [max(settings.block_s, call_s) for call_s in calls_s]
        settle_s = sum(settings.settle_s for call_s in calls_s if call_s <= settings.settle_s)
        return count_passes(turns_s, settings) * (sum(turns_s) + settle_s) + CALLS_AROUND * sum(calls_s)

    def choose_blocks(self, calls_s: Sequence[float]) -> int | None:
        """Return how many passes the time that is left allows; None where it allows none."""
        for blocks in (self.settings.blocks, self.settings.blocks // 2, FEWEST_BLOCKS):
            if self.estimate_timing_s(calls_s, blocks) <= self.left_s:
                return blocks
        return FEWEST_BLOCKS if self.left_s > 0 and self.estimate_timing_s(calls_s, FEWEST_BLOCKS) <= SHORT_S else None
