"""What a page keeps of a case that a newer run has measured again, and the seals of fetched runs."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

import msgspec

from jaxmeter.harness.metrics.across import DECISIVE_PROBES
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.record import (
    CaseRecord,
    Manifest,
    Outcome,
    PlannedCase,
    RunFolder,
    RunRecord,
    Status,
    VariantRecord,
    write_bytes,
)
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

    def cut(self, run: RunRecord) -> RunRecord:
        """The run with the cases that fewer than WHOLE newer runs of its place have; of others the series' numbers."""
        manifest = run.manifest
        seen = self._seen.setdefault(_machine(manifest), Counter())
        outdated = {case.id for case in manifest.cases if seen[case.suite, case.name] >= WHOLE}
        cases = tuple(_cut_case(case) if case.id in outdated else case for case in run.cases)
        seen.update((case.suite, case.name) for case in manifest.cases)
        planned = tuple(self._share(case) for case in manifest.cases)
        return msgspec.structs.replace(run, cases=cases, manifest=msgspec.structs.replace(manifest, cases=planned))

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
    known = ((name, {value for value in outcome.values.get(name, ()) if value is not None}) for name in EXACT)
    return {name: tuple(values) for name, values in known if len(values) == 1}


SEAL = ".run.json.sha256"
"""Beside each run in the cache, written last: the sum of its record in hexadecimal; its size in bytes and the time of
its last change in ns, by which it is known again without reading it."""


def seal(folder: RunFolder, data: bytes) -> None:
    """Says that the record of a run is there, whole.

    Args:
      data: What the record holds.

    Raises:
      OSError: It cannot be written.
    """
    write_bytes(folder.path / SEAL, b" ".join([_sum(data), *_describe(folder.mark)]), lasting=False)


def is_sealed(folder: RunFolder) -> bool:
    """Whether the cache holds the record of a run."""
    return read_sum(folder) is not None


def is_sound(folder: RunFolder) -> bool:
    """Whether the record is the one that was sealed; read again only where the file has changed, as one copied has."""
    try:
        known, *described = (folder.path / SEAL).read_bytes().split()
        return described == _describe(folder.mark) or known == _sum(folder.mark.read_bytes())
    except (OSError, ValueError):
        return False


def read_sum(folder: RunFolder) -> bytes | None:
    """The sum of a record in the cache; None of any other."""
    try:
        return (folder.path / SEAL).read_bytes().partition(b" ")[0]
    except OSError:
        return None


def _sum(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()


def _describe(path: Path) -> list[bytes]:
    status = path.stat()
    return [b"%d" % status.st_size, b"%d" % status.st_mtime_ns]
