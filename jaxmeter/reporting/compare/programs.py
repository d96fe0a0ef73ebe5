"""Programs as runs have recorded them, with their texts, planned peak memory and origin, and in pairs of two runs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.record import (
    INCOMPLETE,
    Artifact,
    CompilationDetails,
    Param,
    PlannedCase,
    PlannedVariant,
    RunFolder,
    UnreadableError,
)
from jaxmeter.harness.record.cases import find_nearest, match_cases, names_of
from jaxmeter.harness.record.files import LARGEST_RECORD, PROGRAM_TEXTS, read_kept

KINDS = tuple(PROGRAM_TEXTS)
"""Artifacts that are a program's text, from what JAX traced to what XLA compiled."""

PLANNED = ("planned_peak_bytes", "argument_bytes", "output_bytes", "temp_bytes", "alias_bytes")
"""Metrics of a program's memory, the one that decides whether it fits first."""

NO_PROGRAMS = "the run keeps no programs; measure again with --probe compilation"


class ArtifactError(Exception):
    """A kept file cannot be used; the message names it and says why."""


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
        by_name = {variant.name: variant for variant in self.planned.variants}
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
    nearest = find_nearest(wanted, names, cutoff=0.0)
    return "" if nearest is None else f"; nearest: {nearest!r}"


@dataclass(frozen=True)
class Pair:
    """The same variant of the same case in two runs."""

    case: str
    variant: str
    a: Program
    b: Program


@dataclass(frozen=True)
class Pairs:
    """What can be compared, and what of it could not be read: one sentence each."""

    pairs: tuple[Pair, ...]
    warnings: tuple[str, ...]


def find_pairs(a: Run, b: Run, pattern: str, variant: str | None = None) -> Pairs:
    """Pairs of programs of the cases that match, of one variant or of all that have a program in both runs.

    Args:
      pattern: A case's name, workload or suite; `*` stands for any text and `?` for one character.
    Raises:
      NothingToCompareError: No such case or variant, or no text that both runs keep.
    """
    in_a, in_b = _match(a, pattern), _match(b, pattern)
    names = [name for name in in_a if name in in_b]
    if not names:
        name = next(iter(in_a))
        raise NothingToCompareError(f"{b.folder.path}: no case {name!r}{suggest_nearest(name, _all_names(b))}")
    warnings = [f"case {name} is in {a.folder.path} only" for name in in_a if name not in in_b]
    warnings += [f"case {name} is in {b.folder.path} only" for name in in_b if name not in in_a]
    pairs: list[Pair] = []
    problems: list[str] = []
    for name in names:
        try:
            sides = RecordedCase(a, in_a[name]), RecordedCase(b, in_b[name])
            chosen = _choose_variants(*sides, variant, warnings)
            pairs += [Pair(name, own, *(side.read_program(own, warnings) for side in sides)) for own in chosen]
        except NothingToCompareError as error:
            problems.append(str(error))
    comparable = [pair for pair in pairs if pair.a.texts.keys() & pair.b.texts.keys()]
    if not comparable:
        unread = ["no text of a program can be read in both runs"] if pairs else []
        raise NothingToCompareError("\n".join([*unread, *problems, *warnings]))
    return Pairs(tuple(comparable), (*problems, *warnings))


def _choose_variants(a: RecordedCase, b: RecordedCase, wanted: str | None, warnings: list[str]) -> tuple[str, ...]:
    """Names of the variants to compare."""
    for side in (a, b):
        side.require_program(wanted)
    if wanted is not None:
        return (wanted,)
    in_a, in_b = ({planned.name for planned in side.planned.variants} & side.kept.keys() for side in (a, b))
    for name in sorted(in_a ^ in_b):
        only = a if name in in_a else b
        warnings.append(f"case {only.planned.name}: {name} has a program in {only.loaded.folder.path} only")
    both = tuple(planned.name for planned in a.planned.variants if planned.name in in_a & in_b)
    if not both:
        raise NothingToCompareError(f"case {a.planned.name}: no variant has a program in both runs")
    return both


def _match(loaded: Run, pattern: str) -> dict[str, PlannedCase]:
    matching = {case.name: case for case in match_cases(loaded.manifest.cases, pattern)}
    if not matching:
        nearest = suggest_nearest(pattern, _all_names(loaded))
        raise NothingToCompareError(f"{loaded.folder.path}: no case matches --case {pattern!r}{nearest}")
    return matching


def _all_names(loaded: Run) -> list[str]:
    return [name for case in loaded.manifest.cases for name in names_of(case)]


def read_text(folder: RunFolder, case_id: str, artifact: Artifact) -> str:
    """The text of a case's artifact.

    Raises:
      ArtifactError: As `read_file`.
    """
    return read_file(folder, case_id, artifact).decode("utf-8", "replace")


def read_file(folder: RunFolder, case_id: str, artifact: Artifact) -> bytes:
    """What is in a case's artifact.

    Raises:
      ArtifactError: Its path leads out of the case's folder, nothing can be read there, or it is another file.
    """
    case = folder.case(case_id).path
    path = case / artifact.path
    try:
        # A record is only a file: it may name any place.
        if case.resolve().parent != folder.cases.resolve() or not path.resolve().is_relative_to(case.resolve()):
            raise ArtifactError(f"its path {artifact.path!r} leads out of the case's folder")
        if not path.is_file():
            raise ArtifactError(f"no file {artifact.path!r}")
        data = read_kept(path.resolve(), LARGEST_RECORD)
    except (OSError, ValueError, RuntimeError, UnreadableError) as error:
        raise ArtifactError(f"{artifact.path!r} cannot be read: {error}") from error
    if hashlib.sha256(data).hexdigest() != artifact.sha256:
        raise ArtifactError(f"{artifact.path!r} is not what was recorded (another SHA-256)")
    return data
