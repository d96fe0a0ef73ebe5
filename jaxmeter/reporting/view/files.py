"""What a run keeps of a case beside its numbers, and the command that opens it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from jaxmeter.harness.metrics.reading import Case, Run
from jaxmeter.harness.record import Artifact, RunFolder

from .. import numbers
from ..text import hide_home, visible
from .page_model import KeptFile

TRACE = "trace"
TITLES = {"jaxpr": "jaxpr", "stablehlo": "StableHLO", "hlo": "optimised HLO"}
"""Of the kinds of program texts, from what JAX traced to what XLA compiled."""


def list_files(cases: Sequence[Case]) -> tuple[KeptFile, ...]:
    """Of a case on each machine: its traces, then the texts of its programs."""
    return tuple(one for case in cases for one in _list_of(case))


def _list_of(case: Case) -> Iterable[KeptFile]:
    if case.record is None:
        return
    folder = RunFolder(Path(describe_folder(case.run))).case(case.planned.id)
    where = case.run.label
    kept = case.record.artifacts
    if any(one.kind == TRACE for one in kept):
        size = numbers.memory(float(sum(one.size_bytes for one in kept if one.kind == TRACE)))
        run = name_folder(describe_folder(case.run))
        names = dict.fromkeys(one.variant for one in kept if one.kind == TRACE)
        yield KeptFile(
            f"{', '.join(names)} · {where}: profiler trace",
            f"jaxmeter trace --open {run} --select {shlex.quote(case.planned.id)}",
            f"{size} in {folder.path}/trace",
        )
    by_variant: dict[str, list[Artifact]] = {}
    for one in kept:
        if one.kind in TITLES:
            by_variant.setdefault(one.variant, []).append(one)
    for variant, texts in by_variant.items():
        ordered = sorted(texts, key=lambda one: list(TITLES).index(one.kind))
        folders = dict.fromkeys(str((folder.path / one.path).parent) for one in ordered)
        files = " ".join(f"{name_folder(one)}/*" for one in folders)
        titles = ", ".join(TITLES[one.kind] for one in ordered)
        yield KeptFile(f"{variant} · {where}: {titles}", f"less {files}")


def describe_folder(run: Run) -> str:
    """Return where a run is kept, for a reader: `~` stands for the home folder."""
    return visible(hide_home(str(run.folder.path)))


def name_folder(text: str) -> str:
    """The path as a shell takes it; what stands for the home folder must not be quoted."""
    return f"~/{shlex.quote(text[2:])}" if text.startswith("~/") else shlex.quote(text)
