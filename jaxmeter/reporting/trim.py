"""What a page keeps of a case that a newer run of the same machine has measured again: the numbers of its series."""

from __future__ import annotations

from collections import Counter

import msgspec

from jaxmeter.harness.metrics.across import DECISIVE_PROBES
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.record import CaseRecord, Manifest, Outcome, PlannedCase, RunRecord, Status, VariantRecord
from jaxmeter.harness.record.outcomes import Number

WHOLE = 2
"""Runs of a machine that are kept whole: the newest, and the one that it is compared with."""

TIMES = tuple(metric.name for metric in METRICS.values() if metric.in_history and not metric.exact)

EXACT = tuple(metric.name for metric in METRICS.values() if metric.in_history and metric.exact)
"""Numbers that follow from the program alone; its fingerprint stands in what is kept of its check."""


class Outdated:
    """Runs from the newest to the oldest, each cut to what the ones before leave to be told."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str, str], Counter[tuple[str, str]]] = {}
        self._planned: dict[bytes, PlannedCase] = {}

    def is_covered(self, manifest: Manifest) -> bool:
        """Whether enough newer runs of the machine have every case of a run."""
        seen = self._seen.get(_machine(manifest), Counter())
        return all(seen[case.suite, case.name] >= WHOLE for case in manifest.cases)

    def cut(self, run: RunRecord) -> RunRecord:
        """The run with the cases that fewer than WHOLE newer runs of its place have; of others the series' numbers."""
        seen = self._seen.get(_machine(run.manifest), Counter())
        outdated = {case.id for case in run.manifest.cases if seen[case.suite, case.name] >= WHOLE}
        cases = tuple(_cut_case(case) if case.id in outdated else case for case in run.cases)
        return self.count(msgspec.structs.replace(run, cases=cases))

    def count(self, run: RunRecord) -> RunRecord:
        """The run as it is, with what it plans shared; older runs of its place need less of its cases from here on."""
        manifest = run.manifest
        self._seen.setdefault(_machine(manifest), Counter()).update((case.suite, case.name) for case in manifest.cases)
        planned = tuple(self._share(case) for case in manifest.cases)
        return msgspec.structs.replace(run, manifest=msgspec.structs.replace(manifest, cases=planned))

    def _share(self, case: PlannedCase) -> PlannedCase:
        """An equal case of a newer run, so that a thousand runs of one plan hold it once."""
        return self._planned.setdefault(msgspec.msgpack.encode(case), case)


def _machine(manifest: Manifest) -> tuple[str, str, str]:
    return manifest.backend, manifest.environment.device_name, manifest.machine


def _cut_case(case: CaseRecord) -> CaseRecord:
    variants = tuple(_cut_variant(variant) for variant in case.variants)
    return msgspec.structs.replace(case, variants=variants, artifacts=(), notes=())


def _cut_variant(variant: VariantRecord) -> VariantRecord:
    outcomes = {
        probe: msgspec.structs.replace(
            outcome, values={name: outcome.values[name] for name in TIMES if name in outcome.values}, stderr=None
        )
        for probe, outcome in variant.outcomes.items()
        if probe in DECISIVE_PROBES
    }
    exact = {
        probe: Outcome(status=Status.OK, values=values)
        for probe, outcome in variant.outcomes.items()
        if probe not in outcomes and outcome.status is Status.OK and (values := _choose_exact(outcome))
    }
    return VariantRecord(name=variant.name, outcomes=outcomes | exact)


def _choose_exact(outcome: Outcome) -> dict[str, tuple[Number | None, ...]]:
    """What all processes agree on, once."""
    found = ((name, {one for one in outcome.values.get(name, ()) if one is not None}) for name in EXACT)
    return {name: tuple(known) for name, known in found if len(known) == 1}
