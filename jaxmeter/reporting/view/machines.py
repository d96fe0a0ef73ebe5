"""Where runs were made: runs of one place are one device's history, of which the newest leads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from jaxmeter.harness.metrics.reading import Case, Run

from .keys import fragment_of
from .runs import name_device

History = Mapping[str, Sequence[Sequence[Case]]]
"""By the fragment of a case, for each machine the case in all runs that planned it, the newest first."""


@dataclass(frozen=True)
class MachineRuns:
    """A platform of a machine.

    Args:
      runs: Its runs, from the oldest to the newest; at least one.
    """

    runs: tuple[Run, ...]

    @property
    def newest(self) -> Run:
        """The run that leads."""
        return self.runs[-1]

    @property
    def name(self) -> str:
        """`cpu: AMD EPYC`."""
        return f"{self.newest.where}: {name_device(self.newest)}"

    @cached_property
    def repeated(self) -> int:
        """How many runs have a case that a newer one has, too."""
        seen: set[tuple[str, str]] = set()
        count = 0
        for run in reversed(self.runs):
            names = {(case.planned.suite, case.planned.name) for case in run.cases}
            count += not names.isdisjoint(seen)
            seen |= names
        return count

    def has(self, run: Run) -> bool:
        """Whether a run was made here."""
        return id(run) in self._ids

    @cached_property
    def _ids(self) -> frozenset[int]:
        return frozenset(map(id, self.runs))


def group_by_machine(runs: Sequence[Run]) -> tuple[MachineRuns, ...]:
    """The platforms of the machines of runs, the one with the newest run first."""
    found: dict[tuple[str, str], list[Run]] = {}
    for run in sorted(runs, key=lambda one: one.manifest.started):  # runs of one second stay in their order
        found.setdefault((run.where, run.manifest.machine), []).append(run)
    machines = (MachineRuns(tuple(own)) for own in found.values())
    return tuple(sorted(machines, key=lambda machine: machine.newest.manifest.started, reverse=True))


def choose_newest(machines: Sequence[MachineRuns], cases: Sequence[Case]) -> tuple[Case, ...]:
    """On each machine each case once: as the newest of its runs has it that planned it."""
    by_run: dict[int, list[Case]] = {}
    for case in cases:
        by_run.setdefault(id(case.run), []).append(case)
    chosen = []
    for machine in machines:
        newest: dict[str, Case] = {}
        for run in machine.runs:
            newest |= {fragment_of(case): case for case in by_run.get(id(run), ())}
        kept = set(map(id, newest.values()))
        chosen += [case for case in cases if id(case) in kept]
    return tuple(chosen)


def gather_history(machines: Sequence[MachineRuns], cases: Sequence[Case]) -> History:
    """By the case's fragment, a list for each machine with the case in all of its runs, the newest first."""
    found: dict[str, dict[int, list[Case]]] = {}
    order = {id(run): (index, -age) for index, machine in enumerate(machines) for age, run in enumerate(machine.runs)}
    for case in sorted(cases, key=lambda one: order[id(one.run)]):
        found.setdefault(fragment_of(case), {}).setdefault(order[id(case.run)][0], []).append(case)
    return {fragment: list(by_place.values()) for fragment, by_place in found.items()}
