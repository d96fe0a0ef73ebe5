"""A planned variant and what became of it; every number of it is read by its metric."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from harness.record import Environment, Outcome, PlannedCase, PlannedVariant, Settings, Status
from harness.record.derived import is_baseline, is_peer
from harness.record.metrics import METRICS
from harness.record.reading import Reading, find_worst, read_metric
from harness.record.sentences import describe_details

from .keys import make_key

if TYPE_CHECKING:
    from .cases import Case

D = TypeVar("D")

WITH_NOTES_OF_THEIR_OWN = frozenset({"compilation", "caching", "memory", "residency"})
"""Probes with a section that shows their notes."""


@dataclass(frozen=True, eq=False)
class Variant:
    """A planned variant of a case and its outcomes by probe; a `Readable`."""

    case: Case
    planned: PlannedVariant
    outcomes: dict[str, Outcome]
    _readings: dict[str, Reading] = field(default_factory=dict, init=False, repr=False)

    @property
    def planned_case(self) -> PlannedCase:
        """What was planned of the case."""
        return self.case.planned

    @property
    def environment(self) -> Environment:
        """Where it ran."""
        return self.case.run.manifest.environment

    @property
    def settings(self) -> Settings:
        """How it was measured."""
        return self.case.run.manifest.settings

    def read(self, metric: str) -> Reading:
        """A metric by name; it is read once."""
        if metric not in self._readings:
            self._readings[metric] = read_metric(self, METRICS[metric])
        return self._readings[metric]

    def find(self, variant: str) -> Variant | None:
        """Another variant of the case."""
        return self.case.find(variant)

    def details(self, kind: type[D]) -> D | None:
        """What only the probe of this kind tells."""
        return next((one.details for one in self.outcomes.values() if isinstance(one.details, kind)), None)

    @property
    def status(self) -> Status:
        """How the variant ended as a whole."""
        return self.worst[1].status

    @cached_property
    def worst(self) -> tuple[str, Outcome]:
        """The probe that ended worst, and how."""
        return find_worst(self.outcomes)

    @property
    def is_baseline(self) -> bool:
        """Whether the case's speed-ups refer to this variant."""
        return is_baseline(self)

    @property
    def is_peer(self) -> bool:
        """Whether it is of another library, and not timed beside the others."""
        return is_peer(self)

    @property
    def is_too_large(self) -> bool:
        """Whether it was not run since it needs more memory than its device has."""
        return any(outcome.status is Status.TOO_LARGE for outcome in self.outcomes.values())

    @property
    def alike(self) -> tuple[tuple[tuple[str, ...], Outcome], ...]:
        """Probes that ended for the same reason, with one outcome to stand for them."""
        groups: dict[tuple[object, ...], tuple[tuple[str, ...], Outcome]] = {}
        for probe, outcome in self.outcomes.items():
            key = (outcome.status, outcome.reason, outcome.stderr)
            probes, first = groups.get(key, ((), outcome))
            groups[key] = ((*probes, probe), first)
        return tuple(groups.values())

    @property
    def notes(self) -> tuple[str, ...]:
        """What was noted beside the time and the result, each once."""
        probes = [probe for probe in self.outcomes if probe not in WITH_NOTES_OF_THEIR_OWN]
        return tuple(dict.fromkeys(note for probe in probes for note in self.notes_of(probe)))

    def notes_of(self, probe: str) -> tuple[str, ...]:
        """What one probe noted beside its numbers, and what its details say."""
        outcome = self.outcomes.get(probe)
        if outcome is None:
            return ()
        return (*describe_details(outcome.details, raises=self.planned.raises), *outcome.notes)

    @property
    def key(self) -> str:
        """An id for links, from what names the variant."""
        return make_key("v", self.case.run.run_id, self.case.planned.id, self.planned.name)
