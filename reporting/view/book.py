"""What changed at each place, from one run to its newest one, and over all of its runs.

A newest run stands beside the one that it was measured against, else beside the run before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from harness.record import Run
from harness.record.statistics import MINIMUM_EFFECT

from ..compare.changes import find_changes
from ..compare.findings import WHOLE, Change, Changes, Finding, merge
from ..compare.snapshot import take_snapshots
from ..history.known import KnownStep
from ..history.steps import Step
from .cases import Case
from .changes import order_changes
from .places import Place
from .runs import LabelledRun
from .steps import PlaceSteps, gather_steps


@dataclass(frozen=True)
class Book:
    """Findings by place, and by case.

    Args:
      of_places: In the order of the places that have an earlier run.
      steps: What changed for good over many runs, by place.
    """

    of_places: tuple[tuple[Place, Changes], ...] = ()
    steps: tuple[PlaceSteps, ...] = ()
    _by_case: dict[tuple[int, str, str], tuple[Change, ...]] = field(default_factory=dict)

    def of(self, case: Case) -> tuple[Change, ...]:
        """What was found of a case of a newest run; empty where it was not compared."""
        return self._by_case.get((id(case.run), case.planned.name, case.planned.where), ())

    def worst_of(self, case: Case, variant: str = "") -> Change | None:
        """What is to be told first of a case, or of one variant of it; None where nothing changed."""
        found = [one for one in self.of(case) if not variant or one.variant in ("", variant)]
        return next(iter(order_changes(found)), None)

    def steps_of(self, case: Case) -> tuple[Step, ...]:
        """What changed for good of a case at the place of its run."""
        return next((one.of(case) for one in self.steps if one.place.has(case.run)), ())

    def earlier_of(self, case: Case) -> str:
        """The id of the run that a case was compared with; empty where there is none."""
        return next((changes.before for place, changes in self.of_places if place.newest is case.run), "")


def compare_places(
    places: Sequence[Place],
    confirmation: Run | None = None,
    minimum_effect: float = MINIMUM_EFFECT,
    known: Sequence[KnownStep] = (),
) -> Book:
    """Every place with more than one run of a case.

    Args:
      confirmation: A run that timed what was suspected against one of these runs.
      minimum_effect: The smallest change of a time that is told, as a share.
      known: Steps over many runs that are no news.
    """
    of_places = []
    by_case: dict[tuple[int, str, str], list[Change]] = {}
    for place in places:
        earlier = _choose_earlier(place)
        if earlier is None:
            continue
        newest = place.newest
        changes = find_changes(*take_snapshots(earlier.run, newest.run), minimum_effect=minimum_effect)
        if confirmation is not None and confirmation.manifest.against == changes.before:
            again = find_changes(*take_snapshots(earlier.run, confirmation), minimum_effect=minimum_effect)
            changes = merge(changes, again)
        if newest.manifest.against != changes.before:
            changes = replace(changes, found=tuple(one for one in changes.found if not _is_elsewhere(one)))
        of_places.append((place, changes))
        for one in changes.found:
            by_case.setdefault((id(newest), one.case, one.where), []).append(one)
    steps = gather_steps(places, known, minimum_effect)
    return Book(tuple(of_places), steps, {key: tuple(found) for key, found in by_case.items()})


def _is_elsewhere(one: Change) -> bool:
    """Whether it says that only one of the runs has a case: the page has those of all runs."""
    return one.metric == WHOLE and not one.variant and not one.reason and one.finding in (Finding.NEW, Finding.GONE)


def _choose_earlier(place: Place) -> LabelledRun | None:
    """The run that the newest was measured against; else the newest before it that has a case of it."""
    newest = place.newest
    earlier = place.runs[-2::-1]
    names = {(case.name, case.where) for case in newest.manifest.cases}
    shared = [run for run in earlier if any((case.name, case.where) in names for case in run.manifest.cases)]
    meant = [run for run in shared if run.manifest.run_id == newest.manifest.against]
    return next(iter(meant or shared), None)
