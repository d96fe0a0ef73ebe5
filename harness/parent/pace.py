"""What the processes of a run took, and so what those to come will take."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from harness.plan.launches import Launch
from harness.plan.probes import PROBES

Key = tuple[str, ...]


@dataclass
class Pace:
    """Seconds of each process by what it looked at: one of a later round takes about as long."""

    _taken_s: dict[Key, list[float]] = field(default_factory=dict)
    _by_process: dict[str, list[float]] = field(default_factory=dict)
    _by_variant: dict[tuple[str, str], float] = field(default_factory=dict)

    def add(self, launch: Launch, seconds: float) -> None:
        """Counts a process that has ended, or several that did the work of one."""
        self._taken_s.setdefault(_key_of(launch), []).append(seconds)
        self._by_process.setdefault(launch.process, []).append(seconds)

    def add_variant(self, case: str, variant: str, seconds: float) -> None:
        """What one variant took of a timing launch."""
        self._by_variant[case, variant] = seconds

    def predict_s(self, launches: Iterable[Launch]) -> float:
        """What launches will take: each the mean of those like it, else of its kind."""
        return math.fsum(map(self._predict_one_s, launches))

    def predict_variant_s(self, case: str, variant: str) -> float:
        """What one variant takes of a timing launch; 0 where it was not timed yet."""
        return self._by_variant.get((case, variant), 0.0)

    def _predict_one_s(self, launch: Launch) -> float:
        like_it = self._taken_s.get(_key_of(launch)) or self._by_process.get(launch.process) or [0.0]
        return math.fsum(like_it) / len(like_it)


def _key_of(launch: Launch) -> Key:
    """The same in every round. Of variants side by side, one may be missing since."""
    together = any(PROBES[probe].side_by_side for probe in launch.probes)
    return (launch.case, launch.process, launch.regime, *(launch.variants[:1] if together else launch.variants))
