"""What the processes of a run took, and so what those to come will take."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from jaxmeter.harness.plan.processes import PlannedProcess
from jaxmeter.harness.plan.timing_process import SIDE_PROCESSES

Key = tuple[str, ...]


@dataclass(frozen=True)
class Coming:
    """A planned process, and the variants that it still looks at."""

    process: PlannedProcess
    variants: tuple[str, ...]


@dataclass
class Pace:
    """Seconds of each process by what it looked at: one of a later round takes about as long."""

    _taken_s: dict[Key, list[tuple[frozenset[str], frozenset[str], float]]] = field(default_factory=dict)
    _by_process: dict[str, list[float]] = field(default_factory=dict)
    _by_variant: dict[tuple[str, str], float] = field(default_factory=dict)

    def add(self, ran: Coming, seconds: float) -> None:
        """Counts a process that has ended, or several that did the work of one."""
        how = (frozenset(ran.variants), _sides_of(ran.process), seconds)
        self._taken_s.setdefault(_key_of(ran.process), []).append(how)
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
        """Return the mean duration of equal processes.

        Without equal processes, return the last duration with other side times. Else return the last duration with more
        variants, minus the time of the additional variants. Else return the mean of the kind.
        """
        like_it = self._taken_s.get(_key_of(one.process), [])
        alike = [(sides, seconds) for variants, sides, seconds in like_it if variants == frozenset(one.variants)]
        equal = [seconds for sides, seconds in alike if sides == _sides_of(one.process)]
        if not equal and alike:
            equal = [alike[-1][1]]
        if not equal and like_it:
            variants, _, seconds = like_it[-1]
            without_s = sum(
                self.predict_variant_s(one.process.case, name) for name in variants.difference(one.variants)
            )
            equal = [max(0.0, seconds - without_s)]
        taken_s = equal or self._by_process.get(one.process.kind) or [0.0]
        return math.fsum(taken_s) / len(taken_s)


def _sides_of(process: PlannedProcess) -> frozenset[str]:
    """Return the side times that a process measures."""
    taken = (side for side, processes in SIDE_PROCESSES.items() if process.round < processes)
    return frozenset(taken) if process.keeps_samples else frozenset()


def _key_of(process: PlannedProcess) -> Key:
    """The same in every round."""
    return (process.case, process.kind, process.cache_state, *process.variants)
