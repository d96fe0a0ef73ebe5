"""What one process may take of a run's budget, and who took the most of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from jaxmeter.harness.plan.messages import Heartbeat
from jaxmeter.harness.plan.processes import PlannedProcess
from jaxmeter.harness.record import PlannedCase
from jaxmeter.harness.record.holders import Holder

GRACE_S = 10.0
"""Chosen: a process that runs when the budget ends has so much longer, or GRACE of the budget where that is more."""

GRACE = 0.05

STAGE_SHARE = 1 / 3
"""One stage of one variant may take so much of the time that is left, where other cases wait for their first round.
However many variants exceed it one after the other, some time is left for the other cases."""

STAGE_FLOOR_S = 10.0
"""A stage may always take so long: all stages of an unrolled loop of 360 steps took 11.6 s together."""


@dataclass(frozen=True)
class Allowance:
    """The time that a process may take, asked when the process begins.

    Args:
      budget_s: The budget of the whole run; infinite for a run without a limit.
      left_s: Returns how much of the budget is left.
      others_wait: Whether other cases wait for their first round.
    """

    budget_s: float
    left_s: Callable[[], float]
    others_wait: bool = False

    def find_end_s(self) -> float:
        """Return after how many seconds a process that begins now is ended, whatever it does."""
        return max(0.0, self.left_s()) + self.grace_s

    @property
    def grace_s(self) -> float:
        """The time that a process may continue after the budget's end."""
        return max(GRACE_S, GRACE * self.budget_s)

    def find_stage_s(self) -> float:
        """Return how long one stage of one variant may take; infinite if no other cases wait."""
        return max(STAGE_FLOOR_S, STAGE_SHARE * self.left_s()) if self.others_wait else math.inf


_Stage = tuple[str, str, str | None, str]
"""Case, process, variant and stage."""


@dataclass
class Holders:
    """Seconds by case, process, variant and stage, as heartbeats name them."""

    clock: Callable[[], float]
    _taken_s: dict[_Stage, float] = field(default_factory=dict)

    def watch(
        self, case: PlannedCase, process: PlannedProcess, tell: Callable[[Heartbeat], None]
    ) -> Callable[[Heartbeat], None]:
        """Start with a process; return the function that receives its heartbeats and passes them to `tell`."""
        self._now: _Stage = (case.name, process.kind, None, "start")
        self._since = self.clock()

        def beat(heartbeat: Heartbeat) -> None:
            self.stop()
            self._now = (case.name, process.kind, heartbeat.variant, heartbeat.stage)
            tell(heartbeat)

        return beat

    def stop(self) -> None:
        """Count the stage that ends now."""
        now = self.clock()
        self._taken_s[self._now] = self._taken_s.get(self._now, 0.0) + now - self._since
        self._since = now

    def find_longest(self) -> Holder | None:
        """Return the stage that took the most; None before any process."""
        if not self._taken_s:
            return None
        (case, kind, variant, stage), seconds = max(self._taken_s.items(), key=lambda item: item[1])
        return Holder(case=case, process=kind, variant=variant, stage=stage, seconds=round(seconds, 1))
