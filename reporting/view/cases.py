"""Every planned case of every run, with its record where there is one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from harness.record import INCOMPLETE, CaseRecord, Outcome, PlannedCase, PlannedVariant, Status

from ..load import explain_stop
from ..numbers import usable
from .keys import make_key
from .runs import LabelledRun
from .variants import Variant

LOST_VARIANT = "no record of this variant in its case"


@dataclass(frozen=True, eq=False)
class Case:
    """A planned case of one run. A case without a record is lost."""

    run: LabelledRun
    planned: PlannedCase
    record: CaseRecord | None

    @cached_property
    def variants(self) -> tuple[Variant, ...]:
        """Every planned variant: the baseline first, then in the order of the plan."""
        ordered = sorted(self.planned.variants, key=lambda variant: variant.name != self.planned.baseline)
        return tuple(Variant(self, variant, self._outcomes(variant)) for variant in ordered)

    def find(self, variant: str) -> Variant | None:
        """A variant by name; None where the case does not plan it."""
        return next((one for one in self.variants if one.planned.name == variant), None)

    @cached_property
    def baseline(self) -> Variant | None:
        """The variant that speed-ups refer to."""
        return self.find(self.planned.baseline)

    @cached_property
    def is_complete(self) -> bool:
        """Whether nothing failed, is wrong or is missing."""
        return self.record is not None and not any(variant.status in INCOMPLETE for variant in self.variants)

    @property
    def is_lost(self) -> bool:
        """Whether the run left no record of it."""
        return self.record is None

    @property
    def key(self) -> str:
        """An id for links."""
        return make_key("c", self.run.run_id, self.planned.id)

    @property
    def label(self) -> str:
        """The case and where it ran."""
        return f"{self.planned.name} · {self.run.label}"

    @property
    def why_lost(self) -> str:
        """Why a case has no record."""
        if (stop := self.run.run.stopped) is not None:
            return f"no record: the run stopped before it, since {explain_stop(stop)}; --resume goes on with the run"
        return "no record: the run ended before the case did, or its case.json cannot be read"

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


def find_size(case: PlannedCase) -> tuple[float, float]:
    """How much a case works on, to find the largest of a suite: by declared bytes or operations, then by its params."""
    declared = usable(None if case.cost is None else case.cost.bytes or case.cost.flops)
    numbers = [usable(value) for value in case.params.values() if isinstance(value, int | float)]
    return declared or 0.0, math.fsum(math.log2(abs(number)) for number in numbers if number)
