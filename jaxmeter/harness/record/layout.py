"""The run folder: every path in it, by what it holds.

results/<run-id>/
manifest.json                   environment, settings, every planned case; written first
cases/<id>/processes/NN.json.gz  raw samples and block conditions of one timing process; NN-<peer>.json.gz of a peer's
cases/<id>/processes/NN.replaced.json.gz  of a contended process that a fresh process has replaced
cases/<id>/case.json            statuses and per-launch summaries; written anew after each round
cases/<id>/programs/<variant>/  jaxpr.txt, stablehlo.mlir, hlo.txt and program.jaxexport of a compiled variant
cases/<id>/trace/<variant>/     profiler captures, as xprof wants them
stopped.json                    why a run has stopped before its last case; gone when it goes on
run.json                        commit mark: manifest and all cases; written last

results/.self-tests/<machine>.json  what a machine's self-test found; later runs copy it into their manifests
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROGRAM_TEXTS = {"jaxpr": "jaxpr.txt", "stablehlo": "stablehlo.mlir", "hlo": "hlo.txt"}
"""Kinds of artifact that are a program's text, and their file names; from what JAX traced to what XLA compiled."""

EXPORTED = "jaxexport"
"""The kind of artifact that a later run can compile and run again."""

LARGEST_PROGRAM = 32 * 2**20
"""Bytes of a kept program. Constants are part of one; a larger one would outweigh all else that a run keeps."""

_PROGRAM_FILES = {**PROGRAM_TEXTS, EXPORTED: "program.jaxexport"}

LONGEST_READABLE = 80
"""Characters of a file's name before its hash: file systems take 255 bytes."""

_REPLACED = ".replaced.json.gz"

SELF_TESTS = ".self-tests"
"""The folder beside the runs with a file for each machine; `results/*` in a shell is without it."""


@dataclass(frozen=True)
class CaseFolder:
    """The folder of one case."""

    path: Path

    @property
    def record(self) -> Path:
        """What was measured of the case."""
        return self.path / "case.json"

    def process(self, index: int, peer: str | None = None, *, replaced: bool = False) -> Path:
        """Raw samples of a timing process: of JAX's variants, or of a peer, which has a process of its own.

        Args:
          replaced: Of the contended one that another has replaced.
        """
        of_peer = "" if peer is None else f"-{_as_folder(peer)}"
        return self.path / "processes" / f"{index:02d}{of_peer}{_REPLACED if replaced else '.json.gz'}"

    def processes(self) -> list[Path]:
        """Raw samples of every timing process, without those that another has replaced."""
        return sorted(path for path in (self.path / "processes").glob("*.json.gz") if not path.name.endswith(_REPLACED))

    def count_replaced(self) -> int:
        """How many timing processes another has replaced."""
        return len(list((self.path / "processes").glob(f"*{_REPLACED}")))

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

    def case(self, case_id: str) -> CaseFolder:
        """The folder of a case."""
        return CaseFolder(self.cases / case_id)

    def case_records(self) -> Iterator[Path]:
        """Every case record that is there, by the case's id."""
        yield from sorted(self.cases.glob("*/case.json"))


def _as_folder(variant: str) -> str:
    """A variant's name as that of one folder: a record may hold any name, and none leads elsewhere."""
    name = re.sub(r"[:/\\\0]", "-", variant)
    return name if name.strip(".") else f"-{name}"


def name_file(name: str) -> str:
    """The name as that of a file or folder: readable, safe on every file system, and unlike for unlike names."""
    readable = re.sub(r"[^A-Za-z0-9=._-]+", "-", name).strip("-")[:LONGEST_READABLE]
    return f"{readable}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
