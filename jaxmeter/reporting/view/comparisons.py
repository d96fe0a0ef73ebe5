"""What changed on each machine, from one run to its newest one, and over all of its runs.

A newest run stands beside the one that it was measured against, else beside the run before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from jaxmeter.harness.metrics.reading import Case, Run
from jaxmeter.harness.metrics.statistics import MINIMUM_EFFECT

from ..compare.changes import find_changes
from ..compare.findings import WHOLE, Change, Changes, Finding, JudgedReport, merge
from ..history.change_points import ChangePoint
from ..history.known import KnownChangePoint
from .change_points import MachineChanges, gather_change_points
from .changes import order_changes
from .machines import MachineRuns


@dataclass(frozen=True)
class Comparisons:
    """Findings by machine, and by case.

    Args:
      of_machines: In the order of the machines that have an earlier run.
      change_points: What changed for good over many runs, by machine.
      steps: By suite and case, the confirmed changes from run to run, each with the name of the later run.
    """

    of_machines: tuple[tuple[MachineRuns, Changes], ...] = ()
    change_points: tuple[MachineChanges, ...] = ()
    _by_case: dict[tuple[int, str, str], tuple[Change, ...]] = field(default_factory=dict)
    steps: Mapping[tuple[str, str], tuple[tuple[str, Change], ...]] = field(default_factory=dict)

    @property
    def reports(self) -> tuple[JudgedReport, ...]:
        """Reports of releases, of all machines."""
        return tuple(one for _, changes in self.of_machines for one in changes.reports)

    def of(self, case: Case) -> tuple[Change, ...]:
        """What was found of a case of a newest run; empty where it was not compared."""
        return self._by_case.get((id(case.run), case.planned.name, case.planned.platform), ())

    def worst_of(self, case: Case, variant: str = "") -> Change | None:
        """What is to be told first of a case, or of one variant of it; None where nothing changed."""
        found = [one for one in self.of(case) if not variant or one.variant in ("", variant)]
        return next(iter(order_changes(found)), None)

    def change_points_of(self, case: Case) -> tuple[ChangePoint, ...]:
        """What changed for good of a case at the place of its run."""
        return next((one.of(case) for one in self.change_points if one.machine.has(case.run)), ())

    def steps_of(self, case: Case) -> tuple[tuple[str, Change], ...]:
        """Return the confirmed changes of a case from run to run."""
        return self.steps.get((case.planned.suite, case.planned.name), ())

    def earlier_of(self, case: Case) -> str:
        """The id of the run that a case was compared with; empty where there is none."""
        return next((changes.before for machine, changes in self.of_machines if machine.newest is case.run), "")


def compare_machines(
    machines: Sequence[MachineRuns],
    confirmation: Run | None = None,
    minimum_effect: float = MINIMUM_EFFECT,
    known: Sequence[KnownChangePoint] = (),
) -> Comparisons:
    """Every machine with more than one run of a case.

    Args:
      confirmation: A run that timed what was suspected against one of these runs.
      minimum_effect: The smallest change of a time that is told, as a share.
      known: Change points over many runs that are no news.
    """
    of_machines = []
    by_case: dict[tuple[int, str, str], list[Change]] = {}
    for machine in machines:
        earlier = _choose_earlier(machine)
        if earlier is None:
            continue
        newest = machine.newest
        changes = find_changes(earlier, newest, minimum_effect=minimum_effect)
        if confirmation is not None and confirmation.manifest.against == changes.before:
            again = find_changes(earlier, confirmation, minimum_effect=minimum_effect, explained_by=newest)
            changes = merge(changes, again)
        if newest.manifest.against != changes.before:
            changes = replace(changes, found=tuple(one for one in changes.found if not _is_elsewhere(one)))
        of_machines.append((machine, changes))
        for one in changes.found:
            by_case.setdefault((id(newest), one.case, one.platform), []).append(one)
    change_points = gather_change_points(machines, known, minimum_effect)
    return Comparisons(tuple(of_machines), change_points, {key: tuple(found) for key, found in by_case.items()})


def _is_elsewhere(one: Change) -> bool:
    """Whether it says that only one of the runs has a case: the page has those of all runs."""
    return one.metric == WHOLE and not one.variant and not one.reason and one.finding in (Finding.NEW, Finding.GONE)


def _choose_earlier(machine: MachineRuns) -> Run | None:
    """The run that the newest was measured against; else the newest before it that has a case of it."""
    newest = machine.newest
    earlier = machine.runs[-2::-1]
    shared = [run for run in earlier if not run.by_key.keys().isdisjoint(newest.by_key)]
    meant = [run for run in shared if run.manifest.run_id == newest.manifest.against]
    return next(iter(meant or shared), None)
