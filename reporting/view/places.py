"""Where runs were made: runs of one place are one device's history, of which the newest leads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .cases import Case
from .runs import LabelledRun, name_device


@dataclass(frozen=True)
class Place:
    """A backend of a machine.

    Args:
      runs: Its runs, from the oldest to the newest; at least one.
    """

    runs: tuple[LabelledRun, ...]

    @property
    def newest(self) -> LabelledRun:
        """The run that leads."""
        return self.runs[-1]

    @property
    def name(self) -> str:
        """`cpu: AMD EPYC`."""
        return f"{self.newest.manifest.backend}: {name_device(self.newest.run)}"

    def has(self, run: LabelledRun) -> bool:
        """Whether a run was made here."""
        return any(run is own for own in self.runs)


def group_places(runs: Sequence[LabelledRun]) -> tuple[Place, ...]:
    """The places of runs, the one with the newest run first.

    A run that does not name its machine is of the one that has the same backend and device, where there is one such.
    """
    ordered = sorted(runs, key=lambda one: (one.manifest.started, one.run_id))
    named: dict[tuple[str, str], set[str]] = {}
    for run in ordered:
        if run.manifest.machine is not None:
            named.setdefault((run.manifest.backend, name_device(run.run)), set()).add(run.manifest.machine)
    found: dict[tuple[str, str], list[LabelledRun]] = {}
    for run in ordered:
        device = name_device(run.run)
        machines = named.get((run.manifest.backend, device), set())
        only = next(iter(machines)) if len(machines) == 1 else device
        found.setdefault((run.manifest.backend, run.manifest.machine or only), []).append(run)
    places = (Place(tuple(own)) for own in found.values())
    return tuple(sorted(places, key=lambda place: place.newest.manifest.started, reverse=True))


def choose_newest(places: Sequence[Place], cases: Sequence[Case]) -> tuple[Case, ...]:
    """At each place each case once: as the newest of its runs has it that planned it."""
    chosen = []
    for place in places:
        newest: dict[str, Case] = {}
        for run in place.runs:
            newest |= {case.planned.name: case for case in cases if case.run is run}
        chosen += [case for case in cases if newest.get(case.planned.name) is case]
    return tuple(chosen)
