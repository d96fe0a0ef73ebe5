"""What changed on each machine, from one run to its newest one, and over all of its runs.

A newest run stands beside the one that it was measured against, else beside the run before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from jaxmeter.harness.metrics.reading import Case, Run
from jaxmeter.harness.metrics.statistics import MINIMUM_EFFECT
from jaxmeter.harness.record.wording import shorten

from ..compare.changes import find_changes
from ..compare.verdicts import WHOLE, Change, Changes, JudgedReport, Verdict, merge
from ..history.change_points import ChangePoint
from ..history.known import KnownChangePoint
from .changes import order_changes
from .history import MachineChanges, gather_change_points
from .names import LONGEST_NAME
from .runs import MachineRuns, describe_cores, name_device


@dataclass(frozen=True)
class MeasuredPair:
    """A run, and what changed since the run that it was measured next to.

    Args:
      is_span: Whether other releases of the page lie between both.
    """

    before: Run
    after: Run
    changes: Changes
    names: tuple[str, str] = ("", "")
    is_span: bool = False

    @property
    def machine(self) -> str:
        """The device and the cores: `AMD EPYC, 2 cores, each timing process on one`."""
        return f"{shorten(name_device(self.after), LONGEST_NAME)}, {describe_cores(self.after)}"

    @property
    def python(self) -> str:
        """The Python: `3.12.1`, or `3.11.7 → 3.12.1` if the Pythons of both runs differ."""
        return " → ".join(dict.fromkeys(run.environment.python for run in (self.before, self.after)))


@dataclass(frozen=True)
class Comparisons:
    """Changes by machine, and by case.

    Args:
      of_machines: In the order of the machines that have an earlier run.
      change_points: What changed for good over many runs, by machine.
      pairs: Each run that was measured next to an earlier one of its machine and of the page.
      steps: By suite and case, the confirmed changes from run to run, each with the name of the later run.
    """

    of_machines: tuple[tuple[MachineRuns, Changes], ...] = ()
    change_points: tuple[MachineChanges, ...] = ()
    _by_case: dict[tuple[int, str, str], tuple[Change, ...]] = field(default_factory=dict)
    pairs: tuple[MeasuredPair, ...] = ()
    steps: Mapping[tuple[str, str], tuple[tuple[str, Change], ...]] = field(default_factory=dict)

    @property
    def reports(self) -> tuple[JudgedReport, ...]:
        """Reports of releases, of all machines."""
        return tuple(report for _, changes in self.of_machines for report in changes.reports)

    def of(self, case: Case) -> tuple[Change, ...]:
        """What was found of a case of a newest run; empty where it was not compared."""
        return self._by_case.get((id(case.run), case.planned.name, case.planned.platform), ())

    def worst_of(self, case: Case, variant: str = "") -> Change | None:
        """What is to be told first of a case, or of one variant of it; None where nothing changed."""
        own = [change for change in self.of(case) if not variant or change.variant in ("", variant)]
        return next(iter(order_changes(own)), None)

    def change_points_of(self, case: Case) -> tuple[ChangePoint, ...]:
        """What changed for good of a case at the place of its run."""
        return next(
            (
                machine_changes.of(case)
                for machine_changes in self.change_points
                if machine_changes.machine.has(case.run)
            ),
            (),
        )

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
    pairs = tuple(_find_pairs(machines, minimum_effect))
    known_changes = {(id(pair.before), id(pair.after)): pair.changes for pair in pairs}
    of_machines = []
    by_case: dict[tuple[int, str, str], list[Change]] = {}
    for machine in machines:
        earlier = _choose_earlier(machine)
        if earlier is None:
            continue
        newest = machine.newest
        changes = known_changes.get((id(earlier), id(newest)))
        changes = changes or find_changes(earlier, newest, minimum_effect=minimum_effect)
        if confirmation is not None and confirmation.manifest.against == changes.before:
            again = find_changes(earlier, confirmation, minimum_effect=minimum_effect, explained_by=newest)
            changes = merge(changes, again)
        if newest.manifest.against != changes.before:
            changes = replace(changes, entries=tuple(change for change in changes.entries if not _is_elsewhere(change)))
        of_machines.append((machine, changes))
        for change in changes.entries:
            by_case.setdefault((id(newest), change.case, change.platform), []).append(change)
    change_points = gather_change_points(machines, known, minimum_effect)
    cases = {key: tuple(own) for key, own in by_case.items()}
    return Comparisons(tuple(of_machines), change_points, cases, pairs)


def _find_pairs(machines: Sequence[MachineRuns], minimum_effect: float) -> Iterator[MeasuredPair]:
    for machine in machines:
        by_id = {run.manifest.run_id: run for run in machine.runs}
        for run in machine.runs:
            before = by_id.get(run.manifest.against or "")
            if before is not None and before is not run:
                yield MeasuredPair(before, run, find_changes(before, run, minimum_effect=minimum_effect))


def _is_elsewhere(change: Change) -> bool:
    """Whether it says that only one of the runs has a case: the page has those of all runs."""
    return (
        change.metric == WHOLE
        and not change.variant
        and not change.reason
        and change.verdict in (Verdict.NEW, Verdict.GONE)
    )


def _choose_earlier(machine: MachineRuns) -> Run | None:
    """The run that the newest was measured against; else the newest before it that has a case of it."""
    newest = machine.newest
    earlier = machine.runs[-2::-1]
    shared = [run for run in earlier if not run.by_key.keys().isdisjoint(newest.by_key)]
    meant = [run for run in shared if run.manifest.run_id == newest.manifest.against]
    return next(iter(meant or shared), None)
