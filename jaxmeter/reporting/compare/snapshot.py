"""A run as comparisons see it: its cases by name, each with what was recorded of its variants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from jaxmeter.harness.metrics.metric import Readable
from jaxmeter.harness.metrics.pool import Pool, refer_to
from jaxmeter.harness.metrics.pooling import gather_pool
from jaxmeter.harness.metrics.reading import list_variants
from jaxmeter.harness.record import CaseRecord, Manifest, PlannedCase, Run

Key = tuple[str, str]
"""Of a case: its name and where it ran."""


@dataclass(frozen=True)
class ComparedCase:
    """A case of one run.

    Args:
      record: None where the run left none.
      variants: By name; empty without a record.
    """

    planned: PlannedCase
    record: CaseRecord | None
    variants: Mapping[str, Readable]


@dataclass(frozen=True)
class Snapshot:
    """A run.

    Args:
      pool: What its variants share; of a later run brought to the reference speed of the earlier one.
    """

    run: Run
    pool: Pool

    @property
    def manifest(self) -> Manifest:
        """What the run set out to do, and where."""
        return self.run.manifest

    @cached_property
    def cases(self) -> Mapping[Key, ComparedCase]:
        """Every planned case."""
        records = {record.id: record for record in self.run.cases}
        return {(case.name, case.platform): self._make_side(case, records.get(case.id)) for case in self.manifest.cases}

    def _make_side(self, case: PlannedCase, record: CaseRecord | None) -> ComparedCase:
        if record is None:
            return ComparedCase(case, None, {})
        found = list_variants(case, record, self.manifest.environment, self.manifest.settings, self.pool)
        return ComparedCase(case, record, {one.planned.name: one for one in found})


def take_snapshots(before: Run, after: Run) -> tuple[Snapshot, Snapshot]:
    """Both runs, their times brought to the reference speed of the earlier one."""
    own = gather_pool(before)
    return Snapshot(before, own), Snapshot(after, refer_to(gather_pool(after), own, f"run {before.manifest.run_id}"))
