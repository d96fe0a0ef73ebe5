"""What the processes of a run took, and so what those to come will take."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from jaxmeter.harness.plan.processes import PlannedProcess

Key = tuple[str, ...]


@dataclass(frozen=True)
class Coming:
    """A planned process, and the variants that it still looks at."""

    process: PlannedProcess
    variants: tuple[str, ...]


@dataclass
class Pace:
    """Seconds of each process by what it looked at: one of a later round takes about as long."""

    _taken_s: dict[Key, list[tuple[frozenset[str], float]]] = field(default_factory=dict)
    _by_process: dict[str, list[float]] = field(default_factory=dict)
    _by_variant: dict[tuple[str, str], float] = field(default_factory=dict)

    def add(self, ran: Coming, seconds: float) -> None:
        """Counts a process that has ended, or several that did the work of one."""
        self._taken_s.setdefault(_key_of(ran.process), []).append((frozenset(ran.variants), seconds))
        self._by_process.setdefault(ran.process.kind, []).append(seconds)

    def add_variant(self, case: str, variant: str, seconds: float) -> None:
        """What one variant took of a timing process."""
        self._by_variant[case, variant] = seconds

    def predict_s(self, coming: Iterable[Coming]) -> float:
        """What processes will take."""
        return math.fsum(map(self._predict_one_s, coming))

    def predict_variant_s(self, case: str, variant: str) -> float:
        """What one variant takes of a timing process; 0 where it was not timed yet."""
        return self._by_variant.get((case, variant), 0.0)

    def _predict_one_s(self, one: Coming) -> float:
        """The mean of those like it; of one with more variants, less their part; else the mean of its kind."""
        like_it = self._taken_s.get(_key_of(one.process), [])
        equal = [seconds for variants, seconds in like_it if variants == frozenset(one.variants)]
        if not equal and like_it:
            variants, seconds = like_it[-1]
            without_s = sum(
                self.predict_variant_s(one.process.case, name) for name in variants.difference(one.variants)
            )
            equal = [max(0.0, seconds - without_s)]
        taken_s = equal or self._by_process.get(one.process.kind) or [0.0]
        return math.fsum(taken_s) / len(taken_s)


def _key_of(process: PlannedProcess) -> Key:
    """The same in every round."""
    return (process.case, process.kind, process.cache_state, *process.variants)
