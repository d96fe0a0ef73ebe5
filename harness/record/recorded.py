"""A variant of one recorded case, without a run around it: what its metrics are read from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.record.cases import CaseRecord, PlannedCase, PlannedVariant
from harness.record.environment import Environment
from harness.record.metric import Reading
from harness.record.metrics import METRICS
from harness.record.outcomes import Outcome
from harness.record.pool import EMPTY, Pool
from harness.record.reading import read_metric
from harness.record.settings import Settings


@dataclass(frozen=True)
class RecordedVariant:
    """A `Readable` of a case by itself, such as one that was measured in a notebook."""

    planned_case: PlannedCase
    record: CaseRecord
    environment: Environment
    settings: Settings
    planned: PlannedVariant
    pool: Pool = EMPTY

    @property
    def outcomes(self) -> Mapping[str, Outcome]:
        """By probe; empty for a variant without a record."""
        return next((one.outcomes for one in self.record.variants if one.name == self.planned.name), {})

    def read(self, metric: str) -> Reading:
        """A metric by name."""
        return read_metric(self, METRICS[metric])

    def find(self, variant: str) -> RecordedVariant | None:
        """Another variant of the case."""
        found = list_variants(self.planned_case, self.record, self.environment, self.settings, self.pool)
        return next((one for one in found if one.planned.name == variant), None)


def list_variants(
    planned_case: PlannedCase,
    record: CaseRecord,
    environment: Environment,
    settings: Settings,
    pool: Pool | None = None,
) -> tuple[RecordedVariant, ...]:
    """Every planned variant of a case, in the order of the plan; without a pool, nothing is borrowed."""
    return tuple(
        RecordedVariant(planned_case, record, environment, settings, planned, pool or EMPTY)
        for planned in planned_case.variants
    )
