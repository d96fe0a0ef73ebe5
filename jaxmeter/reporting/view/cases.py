"""Every planned case of every run and its variants; every number of them is read by its metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from jaxmeter.harness.metrics.across import find_worst, read_metric
from jaxmeter.harness.metrics.derived import is_baseline, is_peer
from jaxmeter.harness.metrics.metric import Reading
from jaxmeter.harness.metrics.pool import Pool
from jaxmeter.harness.metrics.sentences import describe_details
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.record import (
    INCOMPLETE,
    CaseRecord,
    Environment,
    Outcome,
    PlannedCase,
    PlannedVariant,
    Settings,
    Status,
)

from ..load import explain_stop
from .keys import make_fragment, make_key
from .runs import LabelledRun

D = TypeVar("D")

LOST_VARIANT = "no record of this variant in its case"


WITH_NOTES_OF_THEIR_OWN = frozenset({"compilation", "caching", "memory", "measured_memory"})
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

    @property
    def pool(self) -> Pool:
        """What it shares with the other variants of its run."""
        return self.case.run.pool

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
        """Whether the case's speedups refer to this variant."""
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


@dataclass(frozen=True, eq=False)
class Case:
    """A planned case of one run. A case without a record is lost."""

    run: LabelledRun
    planned: PlannedCase
    record: CaseRecord | None

    @cached_property
    def variants(self) -> tuple[Variant, ...]:
        """Every planned variant: the baseline first, then in the order of the plan.

        Without the programs that an earlier run kept: what they took stands where it is told what changed. In a run
        that only confirms, one of them is the baseline.
        """
        ordered = sorted(self.planned.variants, key=lambda variant: variant.name != self.planned.baseline)
        shown = (one for one in ordered if one.replays is None or one.name == self.planned.baseline)
        return tuple(Variant(self, variant, self._outcomes(variant)) for variant in shown)

    def find(self, variant: str) -> Variant | None:
        """A variant by name; None where the case does not plan it."""
        return next((one for one in self.variants if one.planned.name == variant), None)

    @cached_property
    def baseline(self) -> Variant | None:
        """The variant that speedups refer to."""
        return self.find(self.planned.baseline)

    @cached_property
    def is_complete(self) -> bool:
        """Whether nothing failed, is wrong or is missing."""
        return self.record is not None and not any(variant.status in INCOMPLETE for variant in self.variants)

    @property
    def is_skipped(self) -> bool:
        """Whether none of its variants was to be run here, as where there are too few devices."""
        return self.record is not None and all(variant.skip is not None for variant in self.planned.variants)

    @property
    def is_lost(self) -> bool:
        """Whether the run left no record of it."""
        return self.record is None

    @property
    def key(self) -> str:
        """An id for links."""
        return make_key("c", self.run.run_id, self.planned.id)

    @cached_property
    def fragment(self) -> str:
        """What opens the view of the case; it is the same on every machine."""
        return make_fragment("case", self.planned.suite, self.planned.name)

    @property
    def label(self) -> str:
        """The case and where it ran."""
        return f"{self.planned.name} · {self.run.label}"

    @property
    def why_lost(self) -> str:
        """Why a case has no record."""
        if (stop := self.run.run.stopped) is not None:
            return f"no record: the run stopped before it, since {explain_stop(stop)}; --resume goes on with the run"
        return "no record: the run ended before the case did, or its record cannot be read"

    def _outcomes(self, variant: PlannedVariant) -> dict[str, Outcome]:
        recorded = (
            next((one for one in self.record.variants if one.name == variant.name), None) if self.record else None
        )
        outcomes = recorded.outcomes if recorded is not None else {}
        if variant.skip is not None and all(one.status is Status.SKIPPED for one in outcomes.values()):
            # Said once: the same reason for every probe would be repetition.
            return {"": Outcome(status=Status.SKIPPED, reason=variant.skip)}
        if outcomes:
            return outcomes
        return {"": Outcome(status=Status.LOST, reason=self.why_lost if self.record is None else LOST_VARIANT)}


def gather_cases(runs: Sequence[LabelledRun]) -> tuple[Case, ...]:
    """Every planned case of every run, by suite and workload, then by run."""
    cases = []
    for run in runs:
        records = {record.id: record for record in run.run.cases}
        cases += [Case(run, planned, records.get(planned.id)) for planned in run.run.manifest.cases]
    return tuple(sorted(cases, key=lambda case: (case.planned.suite, case.planned.workload)))
