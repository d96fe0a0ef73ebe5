"""How long a process may take: in silence, in one stage, and of a run's budget."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from jaxmeter.harness.plan.messages import Heartbeat

START_LIMIT_S = 120.0


class Overran(StrEnum):
    """What of a run's budget a process took too much of, so that the harness ended it."""

    STAGE = "its share for one stage"
    BUDGET = "the budget"


@dataclass(frozen=True)
class Limits:
    """Seconds; infinite where nothing limits them.

    Args:
      stage_limit_s: The longest silence in a stage of a variant, whatever the budget.
      stage_share_s: The longest silence in a stage of a variant, by the budget.
      end_s: From the beginning of the process to its end, by the budget.
    """

    stage_limit_s: float
    stage_share_s: float = math.inf
    end_s: float = math.inf

    def find_deadline(self, start: float, since: float, last: Heartbeat) -> tuple[float, Overran | None]:
        """Return when a process has to be ended unless it says something before, and which part of a budget says so.

        Args:
          start: When it began.
          since: When its last heartbeat came.
        """
        moments: list[tuple[float, Overran | None]] = [
            (since + silence_limit_s(last, self.stage_limit_s), None),
            (start + self.end_s, Overran.BUDGET),
        ]
        if last.variant is not None:  # before any variant, none has caused it
            moments.append((since + self.stage_share_s, Overran.STAGE))
        return min(moments, key=lambda moment: moment[0])


def silence_limit_s(last: Heartbeat, stage_limit_s: float) -> float:
    """The longest silence after a heartbeat: starting and inputs, before any variant, get START_LIMIT_S at least."""
    return stage_limit_s if last.variant else max(stage_limit_s, START_LIMIT_S)
