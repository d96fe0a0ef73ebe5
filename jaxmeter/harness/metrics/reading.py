"""A variant of one recorded case, without a run around it: what its metrics are read from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from jaxmeter.harness.metrics.across import read_metric
from jaxmeter.harness.metrics.metric import Reading
from jaxmeter.harness.metrics.pool import EMPTY, Pool
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.record.cases import CaseRecord, PlannedCase, PlannedVariant
from jaxmeter.harness.record.environment import Environment
from jaxmeter.harness.record.outcomes import Outcome
from jaxmeter.harness.record.settings import Settings


@dataclass(frozen=True)
class RecordedVariant:
    """A `Readable` of a case by itself, such as one that was measured in a notebook."""

    planned_case: PlannedCase
    record: CaseRecord
    environment: Environment
    settings: Settings
    planned: PlannedVariant
    pool: Pool = EMPTY
    siblings: dict[str, RecordedVariant] = field(default_factory=dict, repr=False, compare=False)
    _readings: dict[str, Reading] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def outcomes(self) -> Mapping[str, Outcome]:
        """By probe; empty for a variant without a record."""
        return next((one.outcomes for one in self.record.variants if one.name == self.planned.name), {})

    def read(self, metric: str) -> Reading:
        """A metric by name; it is read once."""
        if metric not in self._readings:
            self._readings[metric] = read_metric(self, METRICS[metric])
        return self._readings[metric]

    def find(self, variant: str) -> RecordedVariant | None:
        """Another variant of the case."""
        return self.siblings.get(variant)


def list_variants(
    planned_case: PlannedCase,
    record: CaseRecord,
    environment: Environment,
    settings: Settings,
    pool: Pool | None = None,
) -> tuple[RecordedVariant, ...]:
    """Every planned variant of a case, in the order of the plan; without a pool, nothing is borrowed."""
    siblings: dict[str, RecordedVariant] = {}
    for planned in planned_case.variants:
        one = RecordedVariant(planned_case, record, environment, settings, planned, pool or EMPTY, siblings)
        siblings[planned.name] = one
    return tuple(siblings.values())
