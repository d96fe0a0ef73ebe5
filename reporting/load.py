"""From the paths a user gives to runs: what cannot be read is named and left out, never the reason for a crash."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.record import CaseRecord, RecordError, Run, RunFolder, Stop, StopReason, read_json, read_manifest, read_run

from .text import one_of, visible


@dataclass(frozen=True)
class LoadedRun:
    """A run and the folder that it was read from."""

    run: Run
    folder: RunFolder


@dataclass(frozen=True)
class Loaded:
    """Runs by the time they started, and what was wrong with the files: one sentence each."""

    runs: tuple[LoadedRun, ...]
    warnings: tuple[str, ...]


def load(paths: Iterable[Path]) -> Loaded:
    """Reads run folders. A run given twice counts once; two runs that share an id are both kept, with a warning."""
    runs: list[LoadedRun] = []
    warnings: list[str] = []
    for path in paths:
        try:
            run = _load_run(RunFolder(path), warnings)
        except RecordError as error:
            warnings.append(f"left out: {error}")
            continue
        if any(run == other.run for other in runs):
            warnings.append(f"{path}: run {run.manifest.run_id} was given more than once and is counted once")
            continue
        if any(run.manifest.run_id == other.run.manifest.run_id for other in runs):
            warnings.append(f"{path}: another run has the id {run.manifest.run_id} but other contents; both are shown")
        runs.append(LoadedRun(run, RunFolder(path)))
    runs.sort(key=lambda loaded: (loaded.run.manifest.started, loaded.run.manifest.run_id))
    return Loaded(tuple(runs), tuple(visible(_private(warning)) for warning in warnings))


def _private(text: str) -> str:
    """The text with the home folder, which may hold a name, as `~`: the page may be sent on."""
    home = str(Path.home())
    return re.sub(re.escape(home) + r"(?![\w.-])", "~", text) if len(home) > 1 else text


def _load_run(folder: RunFolder, warnings: list[str]) -> Run:
    """One run, from its commit mark, or from the files that a run without one has left.

    Raises:
      RecordError: There is no run at this path, or its manifest cannot be read.
    """
    _require_run_folder(folder)
    try:
        manifest = read_manifest(folder)
    except RecordError as error:
        run = _from_mark(folder, warnings)
        if run is None:
            raise
        warnings.append(f"{error}; {folder.mark.name} holds it too")
        return run
    if (run := _from_mark(folder, warnings)) is not None:
        return run
    cases = tuple(_cases(folder, warnings))
    stopped = _stopped(folder, warnings)
    run = _checked(Run(manifest=manifest, cases=cases, stopped=stopped), folder, warnings)
    lost = len(run.lost())
    state = f"{lost} of {one_of(len(manifest.cases), 'case')} lost" if lost else "no case lost"
    end = f"did not end (no usable {folder.mark.name})" if stopped is None else f"stopped: {why_stopped(stopped)}"
    resume = "; --resume goes on with it" if lost else ""
    warnings.append(f"{folder.path}: run {manifest.run_id} {end}: {state}{resume}")
    return run


def why_stopped(stop: Stop) -> str:
    """Why a run stopped before its last case, in words."""
    if stop.reason is StopReason.BUDGET_USED:
        return f"the budget of {stop.budget_s:g} s is used up" if stop.budget_s is not None else "its budget is used up"
    return "it was interrupted"


def _stopped(folder: RunFolder, warnings: list[str]) -> Stop | None:
    """That a run stopped before its last case; None where nothing says so."""
    if not folder.stop.exists():
        return None
    try:
        return read_json(folder.stop, Stop)
    except RecordError as error:
        warnings.append(str(error))
        return None


def _from_mark(folder: RunFolder, warnings: list[str]) -> Run | None:
    """The run from its commit mark; None where there is none that can be read."""
    if not folder.mark.exists():
        return None
    try:
        return _checked(read_run(folder), folder, warnings)
    except RecordError as error:
        warnings.append(f"{error}; its cases are read one by one")
        return None


def _require_run_folder(folder: RunFolder) -> None:
    """Says what a path is when it is no run folder.

    Raises:
      RecordError: It is none.
    """
    path = folder.path
    try:
        if folder.manifest.exists():
            return
        if not path.exists():
            raise RecordError(f"{path}: no such folder")
        if not path.is_dir():
            raise RecordError(f"{path}: a file, not a run folder")
        if any(RunFolder(child).manifest.exists() for child in path.iterdir()):
            raise RecordError(f"{path}: holds runs but is none itself; give {path}/*")
    except (OSError, ValueError) as error:
        raise RecordError(f"{path}: cannot be read: {error}") from error
    raise RecordError(f"{path}: no run folder, since it has no {folder.manifest.name}")


def _cases(folder: RunFolder, warnings: list[str]) -> Iterator[CaseRecord]:
    for path in folder.case_records():
        try:
            yield read_json(path, CaseRecord)
        except RecordError as error:
            warnings.append(f"{error}; this case counts as lost")


def _checked(run: Run, folder: RunFolder, warnings: list[str]) -> Run:
    """The run without cases that its manifest does not plan, or that it holds twice: nothing could place them."""
    planned = {case.id for case in run.manifest.cases}
    kept: dict[str, CaseRecord] = {}
    for case in run.cases:
        if case.id not in planned or case.id in kept:
            why = "recorded twice, counted once" if case.id in kept else "not planned by the run, left out"
            warnings.append(f"{folder.path}: case {case.name}: {why}")
        else:
            kept[case.id] = case
    return Run(manifest=run.manifest, cases=tuple(kept.values()), ended=run.ended, stopped=run.stopped)


def run_ids(runs: Iterable[Run]) -> tuple[str, ...]:
    """Their ids in order; a repeated one gets a number, so that each names one run."""
    seen: dict[str, int] = {}
    names = []
    for run in runs:
        name = run.manifest.run_id
        seen[name] = seen.get(name, 0) + 1
        names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return tuple(names)
