"""Finds what two runs have recorded of the same compiled variants: the texts of a program, and its planned memory."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.record import INCOMPLETE, Artifact, CaseRecord, Number, Outcome, PlannedCase, PlannedVariant, Run, Status

KINDS = ("jaxpr", "stablehlo", "hlo")
"""Artifacts that are a program's text, from what JAX traced to what XLA compiled."""

PLANNED = ("peak_bytes", "argument_bytes", "output_bytes", "temp_bytes", "alias_bytes")
"""Metrics of a program's memory, the one that decides whether it fits first."""

NO_PROGRAMS = "the run keeps no programs; measure again with --probe compilation"


class NothingToCompareError(Exception):
    """What was asked for is not in both runs; the message names the nearest that is."""


@dataclass(frozen=True)
class Recorded:
    """A run and the folder that it was read from."""

    run: Run
    folder: Path


@dataclass(frozen=True)
class Program:
    """One variant of one case in one run.

    Args:
      texts: By kind; what is missing or damaged is left out.
      memory: Planned bytes by metric.
      fingerprints: Of the programs that its processes compiled, large constants included.
      source: Hash of the implementation.
      definition: Hash of the workload's inputs, reference and cost.
    """

    texts: Mapping[str, str]
    memory: Mapping[str, Number]
    fingerprints: tuple[str, ...]
    source: str
    definition: str


@dataclass(frozen=True)
class Pair:
    """The same variant of the same case in two runs."""

    case: str
    variant: str
    a: Program
    b: Program


@dataclass(frozen=True)
class Found:
    """What can be compared, and what of it could not be read: one sentence each."""

    pairs: tuple[Pair, ...]
    warnings: tuple[str, ...]


def find(a: Recorded, b: Recorded, pattern: str, variant: str | None = None) -> Found:
    """Pairs of programs of the cases that match, of one variant or of all that have a program in both runs.

    Args:
      pattern: A case's name, workload or suite; `*` stands for any text and `?` for one character.
    Raises:
      NothingToCompareError: No such case or variant, or no text that both runs keep.
    """
    in_a, in_b = (_matching(one, pattern) for one in (a, b))
    names = [name for name in in_a if name in in_b]
    if not names:
        name = next(iter(in_a))
        raise NothingToCompareError(f"{b.folder}: no case {name!r}{_nearest(name, _case_names(b))}")
    warnings = [f"case {name} is in {a.folder} only" for name in in_a if name not in in_b]
    warnings += [f"case {name} is in {b.folder} only" for name in in_b if name not in in_a]
    pairs: list[Pair] = []
    problems: list[str] = []
    for name in names:
        try:
            sides = _Side(a, in_a[name]), _Side(b, in_b[name])
            chosen = _variants(*sides, variant, warnings)
            pairs += [Pair(name, one, *(side.program(one, warnings) for side in sides)) for one in chosen]
        except NothingToCompareError as error:
            problems.append(str(error))
    comparable = [pair for pair in pairs if pair.a.texts.keys() & pair.b.texts.keys()]
    if not comparable:
        unread = ["no text of a program can be read in both runs"] if pairs else []
        raise NothingToCompareError("\n".join([*problems, *warnings, *unread]))
    return Found(tuple(comparable), (*problems, *warnings))


class _Side:
    """A case in one run."""

    def __init__(self, recorded: Recorded, planned: PlannedCase) -> None:
        records = {case.id: case for case in recorded.run.cases}
        if planned.id not in records:
            raise NothingToCompareError(f"{recorded.folder}: case {planned.name} was lost; complete it with --resume")
        self.planned = planned
        self.record: CaseRecord = records[planned.id]
        self.run_folder = recorded.folder
        self.kept: dict[str, dict[str, Artifact]] = {}
        for artifact in self.record.artifacts:
            if artifact.kind in KINDS:
                self.kept.setdefault(artifact.variant, {})[artifact.kind] = artifact

    def planned_variant(self, name: str) -> PlannedVariant:
        by_name = {one.name: one for one in self.planned.variants}
        if name not in by_name:
            nearest = _nearest(name, by_name)
            raise NothingToCompareError(f"{self.run_folder}: case {self.planned.name} has no variant {name!r}{nearest}")
        return by_name[name]

    def program(self, variant: str, warnings: list[str]) -> Program:
        outcomes = next((one.outcomes for one in self.record.variants if one.name == variant), {})
        nothing = Outcome(status=Status.LOST)
        texts = {kind: self._text(artifact, warnings) for kind, artifact in self.kept.get(variant, {}).items()}
        values = outcomes.get("memory", nothing).values
        known = {name: [value for value in values.get(name, ()) if value is not None] for name in PLANNED}
        return Program(
            texts={kind: text for kind in KINDS if (text := texts.get(kind)) is not None},
            memory={name: found[0] for name, found in known.items() if found},
            fingerprints=outcomes.get("compilation", nothing).fingerprints,
            source=self.planned_variant(variant).source,
            definition=self.planned.definition,
        )

    def _text(self, artifact: Artifact, warnings: list[str]) -> str | None:
        """The file's text, if it is what the record says."""
        where = f"{self.run_folder}: {artifact.kind} of {self.planned.name} {artifact.variant}"
        cases = self.run_folder / "cases"
        folder = cases / self.planned.id
        path = folder / artifact.path
        try:
            # A record is only a file: it may name any place.
            if folder.resolve().parent != cases.resolve() or not path.resolve().is_relative_to(folder.resolve()):
                warnings.append(f"{where}: its path {artifact.path!r} leads out of the case's folder; left out")
                return None
            if not path.is_file():
                warnings.append(f"{where}: no file {artifact.path!r}; left out")
                return None
            data = path.read_bytes()
        except (OSError, ValueError, RuntimeError) as error:
            warnings.append(f"{where}: {artifact.path!r} cannot be read: {error}; left out")
            return None
        if hashlib.sha256(data).hexdigest() != artifact.sha256:
            warnings.append(f"{where}: {artifact.path!r} is not what was recorded (another SHA-256); left out")
            return None
        return data.decode("utf-8", "replace")


def _why_no_programs(side: _Side) -> str:
    """The first variant that went wrong before its program was kept; else that nobody asked for programs."""
    for variant in side.record.variants:
        for probe, outcome in variant.outcomes.items():
            if outcome.status in INCOMPLETE:
                return f"no program is kept, since {variant.name} is {outcome.status.value} ({probe}: {outcome.reason})"
        if "compilation" in variant.outcomes:
            return "no program is kept: no variant that was compiled has one program (eager code, a stream)"
    return NO_PROGRAMS


def _variants(a: _Side, b: _Side, wanted: str | None, warnings: list[str]) -> tuple[str, ...]:
    """Names of the variants to compare."""
    for side in (a, b):
        if wanted is not None:
            side.planned_variant(wanted)
        if not side.kept:
            raise NothingToCompareError(f"{side.run_folder}: case {side.planned.name}: {_why_no_programs(side)}")
        if wanted is not None and wanted not in side.kept:
            nearest = _nearest(wanted, side.kept)
            raise NothingToCompareError(
                f"{side.run_folder}: case {side.planned.name} keeps no program of {wanted!r}{nearest}"
            )
    if wanted is not None:
        return (wanted,)
    planned = [{one.name for one in side.planned.variants} & side.kept.keys() for side in (a, b)]
    for name in sorted(planned[0] ^ planned[1]):
        only = a if name in planned[0] else b
        warnings.append(f"case {only.planned.name}: {name} has a program in {only.run_folder} only")
    both = tuple(one.name for one in a.planned.variants if one.name in planned[0] & planned[1])
    if not both:
        raise NothingToCompareError(f"case {a.planned.name}: no variant has a program in both runs")
    return both


def _matching(recorded: Recorded, pattern: str) -> dict[str, PlannedCase]:
    expression = re.compile(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)
    cases = recorded.run.manifest.cases
    found = {case.name: case for case in cases if any(map(expression.fullmatch, _names(case)))}
    if not found:
        nearest = _nearest(pattern.strip("*?"), _case_names(recorded))
        raise NothingToCompareError(f"{recorded.folder}: no case matches --case {pattern!r}{nearest}")
    return found


def _names(case: PlannedCase) -> tuple[str, str, str]:
    return case.name, case.workload, case.suite


def _case_names(recorded: Recorded) -> list[str]:
    return [name for case in recorded.run.manifest.cases for name in _names(case)]


def _nearest(name: str, names: Iterable[str]) -> str:
    found = difflib.get_close_matches(name, list(dict.fromkeys(names)), n=1, cutoff=0.0)
    return f"; nearest: {found[0]!r}" if found else ""
