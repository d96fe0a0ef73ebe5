"""The run folder: every path in it, and its content.

results/<run-id>/
manifest.json                   environment, settings, every planned case; written first.
cases/<id>/processes/NNNN-<kind>.json.gz  one process, in their order: outcomes, and a timing process's raw samples.
cases/<id>/processes/NNNN-<kind>.replaced.json.gz  a contended process that a fresh process has replaced.
cases/<id>/case.json            summary of the process files; written again after each round.
cases/<id>/programs/<variant>/  jaxpr.txt, stablehlo.mlir, hlo.txt and program.jaxexport of a compiled variant.
cases/<id>/trace/<variant>/     profiler captures, in the layout of xprof.
stopped.json                    why a run has stopped before its last case; removed when the run continues.
run.json                        commit mark: manifest and all summaries; written last.

results/.self-tests/<machine>.json  results of a machine's self-test; later runs copy them into their manifests.
results/.peaks/<machine>.json       peaks of a machine's processor; later runs copy them into their environments.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

PROGRAM_TEXTS = {"jaxpr": "jaxpr.txt", "stablehlo": "stablehlo.mlir", "hlo": "hlo.txt"}
"""Kinds of artifact that are a program's text, and their file names; from what JAX traced to what XLA compiled."""

EXPORTED = "jaxexport"
"""The kind of artifact that a later run can compile and run again."""

LARGEST_PROGRAM = 32 * 2**20
"""Bytes of a kept program. Constants are part of one; a larger one would outweigh all else that a run keeps."""

LARGEST_CAPTURE = 2 * 2**30
"""Bytes of a file of a capture. A capture is one message of protobuf, which has less than 2 GiB."""

_PROGRAM_FILES = {**PROGRAM_TEXTS, EXPORTED: "program.jaxexport"}

LONGEST_READABLE = 80
"""Characters of a file's name before its hash: file systems take 255 bytes."""

_REPLACED = ".replaced.json.gz"

SELF_TESTS, PEAKS = ".self-tests", ".peaks"
"""Folders next to the runs with a file for each machine; `results/*` in a shell is without them."""


@dataclass(frozen=True)
class CaseFolder:
    """The folder of one case."""

    path: Path

    @property
    def record(self) -> Path:
        """What was measured of the case."""
        return self.path / "case.json"

    def processes(self, kind: str = "*") -> list[Path]:
        """The file of every process, in their order, without those that another has replaced."""
        found = (self.path / "processes").glob(f"[0-9][0-9][0-9][0-9]-{kind}.json.gz")
        return sorted(path for path in found if not path.name.endswith(_REPLACED))

    def next_process(self, kind: str) -> Path:
        """The file of the process that is written next."""
        last = max((int(path.name[:4]) for path in self.processes()), default=-1)
        return self.path / "processes" / f"{last + 1:04d}-{kind}.json.gz"

    def programs(self, variant: str) -> Path:
        """Where a variant's program texts are kept."""
        return self.path / "programs" / _as_folder(variant)

    def exported(self, variant: str) -> Path:
        """A variant's program, which a later run can compile and run again; of a replay, the one that it runs."""
        return self.programs(variant) / _PROGRAM_FILES[EXPORTED]

    def trace(self, variant: str) -> Path:
        """Where a variant's captures are kept: what `xprof --logdir` takes."""
        return self.path / "trace" / _as_folder(variant)

    def artifacts(self, kind: str, variant: str) -> list[Path]:
        """Files of a kind that a variant has left: its captures, or a text of its program."""
        found = self.trace(variant).rglob("*") if kind == "trace" else [self.programs(variant) / _PROGRAM_FILES[kind]]
        return sorted(path for path in found if path.is_file())


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run, whether it exists or not."""

    path: Path

    @property
    def manifest(self) -> Path:
        """What the run set out to do."""
        return self.path / "manifest.json"

    @property
    def mark(self) -> Path:
        """The commit mark: there once the run has ended."""
        return self.path / "run.json"

    @property
    def stop(self) -> Path:
        """Why the run has stopped before its last case."""
        return self.path / "stopped.json"

    @property
    def cases(self) -> Path:
        """The folder of all case folders."""
        return self.path / "cases"

    def list_processes(self) -> list[Path]:
        """Return the process files of all cases, in their order."""
        return [path for case in sorted(self.cases.glob("*")) for path in CaseFolder(case).processes()]

    def case(self, case_id: str) -> CaseFolder:
        """The folder of a case."""
        return CaseFolder(self.cases / case_id)


def locate_capture(path: str) -> str | None:
    """The folder of the capture that a file belongs to, by its path in the run; None of any other file."""
    match path.split("/"):
        case ["cases", case, "trace", variant, _, *_]:
            return f"cases/{case}/trace/{variant}"
    return None


def name_replaced(process: Path) -> Path:
    """The file of a contended process that the process of a file has replaced."""
    return process.with_name(process.name.removesuffix(".json.gz") + _REPLACED)


def _as_folder(variant: str) -> str:
    """A variant's name as that of one folder: a record may hold any name, and none leads elsewhere."""
    name = re.sub(r"[:/\\\0]", "-", variant)
    return name if name.strip(".") else f"-{name}"


def name_file(name: str) -> str:
    """The name as that of a file or folder: readable, safe on every file system, and unlike for unlike names."""
    readable = re.sub(r"[^A-Za-z0-9=._-]+", "-", name).strip("-")[:LONGEST_READABLE]
    return f"{readable}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
