"""A program as one run has recorded it: its texts, its planned peak memory, and what it was made from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.record import INCOMPLETE, Artifact, CompilationDetails, Param, PlannedCase, PlannedVariant
from jaxmeter.harness.record.layout import PROGRAM_TEXTS
from jaxmeter.harness.record.patterns import find_nearest

from .artifacts import ArtifactError, read_text

KINDS = tuple(PROGRAM_TEXTS)
"""Artifacts that are a program's text, from what JAX traced to what XLA compiled."""

PLANNED = ("planned_peak_bytes", "argument_bytes", "output_bytes", "temp_bytes", "alias_bytes")
"""Metrics of a program's memory, the one that decides whether it fits first."""

NO_PROGRAMS = "the run keeps no programs; measure again with --probe compilation"


class NothingToCompareError(Exception):
    """What was asked for is not in both runs; the message names the nearest that is."""


@dataclass(frozen=True)
class Program:
    """One variant of one case in one run.

    Args:
      texts: By kind; what is missing or damaged is left out.
      memory: Planned bytes by metric; what is missing or damaged is left out.
      fingerprints: Of the programs that its processes compiled, large constants included.
      source: Hash of the implementation.
      definition: Hash of the workload's inputs, reference and cost.
      compiler_options: That the implementation declares.
    """

    texts: Mapping[str, str]
    memory: Mapping[str, float]
    fingerprints: tuple[str, ...]
    source: str
    definition: str
    compiler_options: Mapping[str, Param] = field(default_factory=dict)


class RecordedCase:
    """A case of one run, and the programs that it keeps: artifacts by variant and kind.

    Raises:
      NothingToCompareError: The run has lost the case.
    """

    def __init__(self, loaded: Run, planned: PlannedCase) -> None:
        case = loaded.by_key[planned.name, planned.platform]
        record = case.record
        if record is None:
            raise NothingToCompareError(
                f"{loaded.folder.path}: case {planned.name} was lost; complete it with --resume"
            )
        self.loaded = loaded
        self.planned = planned
        self.record = record
        self.case = case
        self.kept: dict[str, dict[str, Artifact]] = {}
        for artifact in record.artifacts:
            if artifact.kind in KINDS:
                self.kept.setdefault(artifact.variant, {})[artifact.kind] = artifact

    def __str__(self) -> str:
        return f"{self.loaded.folder.path}: case {self.planned.name}"

    def require_variant(self, name: str) -> PlannedVariant:
        """The planned variant of this name.

        Raises:
          NothingToCompareError: There is none.
        """
        by_name = {one.name: one for one in self.planned.variants}
        if name not in by_name:
            raise NothingToCompareError(f"{self} has no variant {name!r}{suggest_nearest(name, by_name)}")
        return by_name[name]

    def require_program(self, variant: str | None) -> None:
        """Checks that this variant, or with None any, keeps a program.

        Raises:
          NothingToCompareError: It does not; the message tells why.
        """
        if variant is not None:
            self.require_variant(variant)
        if not self.kept:
            raise NothingToCompareError(f"{self}: {self._explain_no_programs()}")
        if variant is not None and variant not in self.kept:
            nearest = suggest_nearest(variant, self.kept)
            raise NothingToCompareError(f"{self} keeps no program of {variant!r}{nearest}")

    def _explain_no_programs(self) -> str:
        """The first variant that went wrong before its program was kept; else that nobody asked for programs."""
        for variant in self.record.variants:
            for probe, outcome in variant.outcomes.items():
                if outcome.status in INCOMPLETE:
                    what = f"{variant.name} is {outcome.status.value} ({probe}: {outcome.reason})"
                    return f"no program is kept, since {what}"
            if "compilation" in variant.outcomes:
                return "no program is kept: no variant that was compiled has one program (eager code, a stream)"
        return NO_PROGRAMS

    def read_program(self, variant: str, warnings: list[str]) -> Program:
        """What the run has of a variant; a text that cannot be read is left out with a warning."""
        planned, recorded = self.require_variant(variant), self.case.variant(variant)
        bytes_by_metric = {name: recorded.read(name).estimate for name in PLANNED}
        details = recorded.details(CompilationDetails)
        kept = self.kept.get(variant, {})
        texts = {kind: self._read_text(kept[kind], warnings) for kind in KINDS if kind in kept}
        return Program(
            texts={kind: text for kind, text in texts.items() if text is not None},
            memory={name: size for name, size in bytes_by_metric.items() if size is not None},
            fingerprints=() if details is None else details.fingerprints,
            source=planned.source,
            definition=self.planned.definition,
            compiler_options=planned.compiler_options,
        )

    def _read_text(self, artifact: Artifact, warnings: list[str]) -> str | None:
        try:
            return read_text(self.loaded.folder, self.planned.id, artifact)
        except ArtifactError as error:
            where = f"{self.loaded.folder.path}: {artifact.kind} of {self.planned.name} {artifact.variant}"
            warnings.append(f"{where}: {error}; left out")
            return None


def suggest_nearest(wanted: str, names: Iterable[str]) -> str:
    """`; nearest: 'selu:jit'`: the end of a message that something is not there; empty where nothing is."""
    found = find_nearest(wanted, names, cutoff=0.0)
    return "" if found is None else f"; nearest: {found!r}"
