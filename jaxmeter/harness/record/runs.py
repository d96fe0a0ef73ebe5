"""A run: what it set out to do and where, and the cases that ended; suspects to confirm; the schema of all of it."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import msgspec

from jaxmeter.harness.record.cases import CaseRecord, PlannedCase
from jaxmeter.harness.record.environment import Environment, OwnPackage
from jaxmeter.harness.record.files import (
    RecordError,
    RunFolder,
    UnreadableError,
    decode,
    encode_json,
    read_bytes,
    write_bytes,
)
from jaxmeter.harness.record.outcomes import INCOMPLETE, Status
from jaxmeter.harness.record.processes import Holder, ProcessRecord, describe_used_up
from jaxmeter.harness.record.self_test import SelfTest
from jaxmeter.harness.record.settings import Settings

CONFIRMING_PROCESSES = 12
"""Fresh processes that confirm a suspect: with these, ratios that scatter by 3 % from process to process have 99 %
intervals of ± 2.7 %."""

CONFIRMING_BLOCKS = 36
"""Blocks of each variant in a confirming process. The number of processes is fixed, so shorter processes give a verdict
earlier: twelve processes of 80 blocks took 12.0 s in all, and of 50 blocks 7.0 s. Ratios scatter by up to 30 % more."""

MOST_CONFIRMING = 30
"""Most processes, for a machine where ratios scatter more. Chosen: compared with twelve, they halve the undetectable
difference, by the t multiplier and the square root. Each takes most of a second."""


class Suspect(msgspec.Struct, frozen=True, kw_only=True):
    """A variant whose time may have changed."""

    case: str
    variant: str


class Suspects(msgspec.Struct, frozen=True, kw_only=True):
    """Variants that a run should time again, interleaved with the programs of an earlier run.

    Args:
      baseline: Id of the earlier run.
      suspects: Each suspect once.
      processes: Number of processes if there is time, at least CONFIRMING_PROCESSES.
    """

    baseline: str
    suspects: tuple[Suspect, ...]
    processes: Annotated[int, msgspec.Meta(ge=CONFIRMING_PROCESSES, le=MOST_CONFIRMING)] = CONFIRMING_PROCESSES


SCHEMA_VERSION = 3


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The plan and the environment of a run.

    Args:
      backend: The platform that measured.
      environments: By platform; a target's environment describes what programs were compiled for.
      machine: Name of the machine, by which its self-test and its earlier runs are found.
      self_test: The machine's self-test when the run began, or None.
      against: Id of the earlier run whose programs are interleaved with its own, or None.
      confirms: Whether it only times the suspects of a comparison.
      own_packages: The packages of the user's own that its suites import; None of a run that did not record them.
    """

    schema_version: int
    run_id: str
    tool_version: str
    started: str
    backend: str
    environments: dict[str, Environment]
    settings: Settings
    cases: tuple[PlannedCase, ...]
    machine: str
    self_test: SelfTest | None = None
    against: str | None = None
    confirms: bool = False
    own_packages: tuple[OwnPackage, ...] | None = None

    @property
    def environment(self) -> Environment:
        """That of the backend."""
        return self.environments[self.backend]


class ProcessWarning(msgspec.Struct, frozen=True, kw_only=True):
    """A line that JAX, XLA or Python wrote as a warning in processes that measured, and how many of them wrote it."""

    text: str
    processes: int


class StopReason(StrEnum):
    """Why a run stopped before its last case."""

    INTERRUPTED = "interrupted"
    BUDGET_USED = "budget used"


class Stop(msgspec.Struct, frozen=True, kw_only=True):
    """That a run stopped before its last case; it may go on with `--resume`.

    Args:
      budget_s: What it had, where that is used up.
      held: The stage that took the most of it; None where that was not recorded.
    """

    at: str
    reason: StopReason
    budget_s: float | None = None
    held: Holder | None = None


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A run: its manifest and the cases that ended.

    Args:
      ended: When; null for a run that lacks cases.
      stopped: That a run that lacks cases has stopped, and why; null for one that ended, and for one that was killed.
      warnings: What libraries warned of in its processes; of a resumed run, in those of its last part.
      contents: SHA-256 of the commit mark, with zeros in this place, and of the run's process files: `write_mark`. None
        without a commit mark, and of older runs.
    """

    manifest: Manifest
    cases: tuple[CaseRecord, ...]
    ended: str | None = None
    stopped: Stop | None = None
    warnings: tuple[ProcessWarning, ...] = ()
    contents: str | None = None

    def lost(self) -> tuple[PlannedCase, ...]:
        """Planned cases that have no record, or that were timed too seldom."""
        done = {case.id for case in self.cases if not case.is_lost}
        return tuple(case for case in self.manifest.cases if case.id not in done)

    def is_complete(self) -> bool:
        """Whether every planned case was measured and nothing failed; an empty run is not complete."""
        outcomes = [
            outcome for case in self.cases for variant in case.variants for outcome in variant.outcomes.values()
        ]
        measured = any(outcome.status is Status.OK for outcome in outcomes)
        return measured and not self.lost() and not any(outcome.status in INCOMPLETE for outcome in outcomes)


class Contents(StrEnum):
    """Whether the files of a run are as they were when the run ended."""

    AS_WRITTEN = "as written"
    CHANGED = "changed since the run ended"
    SUMMARIES = "summaries only, no process files"
    UNKNOWN = "unknown"


_ZEROS = "0" * 64


def write_mark(run: RunRecord, folder: RunFolder) -> None:
    """Write the commit mark, with a hash that ties it to the process files."""
    data = encode_json(msgspec.structs.replace(run, contents=_ZEROS))
    before, _, after = data.rpartition(_ZEROS.encode())  # `contents` is the last field
    write_bytes(folder.mark, before + _sum(data, folder.list_processes()).encode() + after)


def check_contents(run: RunRecord, folder: RunFolder, *, reads: bool = True) -> Contents:
    """Return whether the commit mark and the process files of a run are as they were written.

    Args:
      reads: Whether the files are read; else it is unknown where there are process files.
    """
    try:
        files = folder.list_processes()
        if not files:
            return Contents.SUMMARIES
        if run.contents is None or not reads:
            return Contents.UNKNOWN
        before, middle, after = read_bytes(folder.mark).rpartition(run.contents.encode())
        is_same = bool(middle) and _sum(before + _ZEROS.encode() + after, files) == run.contents
    except (OSError, RecordError):
        return Contents.CHANGED
    return Contents.AS_WRITTEN if is_same else Contents.CHANGED


def _sum(mark: bytes, files: Iterable[Path]) -> str:
    """SHA-256 of a commit mark and of process files, each with its name and its case."""
    digest = hashlib.sha256(mark)
    for path in files:
        digest.update(f"{path.parent.parent.name}/{path.name} ".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def read_manifest(folder: RunFolder) -> Manifest:
    """Reads a run's manifest.

    Raises:
      UnreadableError: There is none, or it is damaged.
      RecordError: It is of a schema version that this jaxmeter does not read.
    """
    data = read_bytes(folder.manifest)
    _check_version(folder.manifest, decode(folder.manifest, data, _Versioned).schema_version)
    manifest = decode(folder.manifest, data, Manifest)
    _check_platforms(folder.manifest, manifest)
    return manifest


def read_run(folder: RunFolder) -> RunRecord:
    """Reads a run's commit mark, which holds its manifest and all its cases.

    Raises:
      UnreadableError, RecordError: As for a manifest.
    """
    data = read_bytes(folder.mark)
    try:
        run = decode(folder.mark, data, RunRecord)
    except UnreadableError:  # perhaps since it is of another version: that says more
        _check_version(folder.mark, decode(folder.mark, data, _WithManifest).manifest.schema_version)
        raise
    _check_version(folder.mark, run.manifest.schema_version)
    _check_platforms(folder.mark, run.manifest)
    return run


class _Versioned(msgspec.Struct):
    """The field that a manifest of any version has."""

    schema_version: int


class _WithManifest(msgspec.Struct):
    """What every commit mark holds, of whatever version."""

    manifest: _Versioned


def _check_platforms(path: Path, manifest: Manifest) -> None:
    """Check that there is an environment of every platform that the run names."""
    for platform in (manifest.backend, *(case.platform for case in manifest.cases)):
        if platform not in manifest.environments:
            raise UnreadableError(f"{path}: no environment of the platform '{platform}'")


def _check_version(path: Path, version: int) -> None:
    if version == SCHEMA_VERSION:
        return
    what = f"{path}: schema version {version}, this jaxmeter reads {SCHEMA_VERSION}"
    if version > SCHEMA_VERSION:
        raise RecordError(f"{what}; use a newer jaxmeter")
    raise RecordError(f"{what}; it is older than the first release: measure again")


def json_schema() -> dict[str, Any]:
    """JSON Schema of the commit mark, with every structure that it holds, and of the process files."""
    _, components = msgspec.json.schema_components([RunRecord, ProcessRecord], ref_template="#/$defs/{name}")
    for component in components.values():
        # Python strips the indentation of docstrings from 3.13 on.
        component["description"] = inspect.cleandoc(component["description"])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"jaxmeter record, schema version {SCHEMA_VERSION}",
        "anyOf": [{"$ref": "#/$defs/RunRecord"}, {"$ref": "#/$defs/ProcessRecord"}],
        "$defs": components,
    }


def explain_stop(stop: Stop) -> str:
    """Why a run stopped before its last case, in words."""
    if stop.reason is StopReason.BUDGET_USED:
        return "its budget is used up" if stop.budget_s is None else describe_used_up(stop.budget_s, stop.held)
    return "it was interrupted"
