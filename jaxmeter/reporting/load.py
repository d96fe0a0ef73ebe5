"""From the paths a user gives to runs, and what a page keeps of them; the seals of fetched ones."""

from __future__ import annotations

import gc
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from jaxmeter.harness.metrics.across import DECISIVE_PROBES
from jaxmeter.harness.metrics.reading import Run, read_cases, renew
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.record import (
    CaseRecord,
    Manifest,
    Outcome,
    PlannedCase,
    RecordError,
    RunFolder,
    RunRecord,
    Status,
    Stop,
    UnreadableError,
    VariantRecord,
    read_json,
    read_manifest,
    read_run,
    write_bytes,
)
from jaxmeter.harness.record.files import read_bytes
from jaxmeter.harness.record.outcomes import Number
from jaxmeter.harness.record.runs import Contents, check_contents, explain_stop
from jaxmeter.harness.record.wording import counted, visible

from .text import hide_home

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
    write_bytes(folder.path / SEAL, b" ".join([_sum_data(data), *_describe(folder.mark)]), lasting=False)


def is_sealed(folder: RunFolder) -> bool:
    """Whether the cache holds the record of a run."""
    return read_sum(folder) is not None


def is_sound(folder: RunFolder) -> bool:
    """Whether the record is the one that was sealed; read again only where the file has changed, as one copied has."""
    try:
        known, *described = (folder.path / SEAL).read_bytes().split()
        return described == _describe(folder.mark) or known == _sum_data(folder.mark.read_bytes())
    except (OSError, ValueError):
        return False


def read_sum(folder: RunFolder) -> bytes | None:
    """The sum of a record in the cache; None of any other."""
    try:
        return (folder.path / SEAL).read_bytes().partition(b" ")[0]
    except OSError:
        return None


def _sum_data(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()


def _describe(path: Path) -> list[bytes]:
    status = path.stat()
    return [b"%d" % status.st_size, b"%d" % status.st_mtime_ns]


MOST_CHECKED = 20
"""Runs of which every process file is read, to see that nobody has changed it; of more it would take a minute."""

EDITED = "its files are not those that it wrote: run.json or process files have changed; fetch or measure it again"


@dataclass(frozen=True)
class Loaded:
    """Runs by the time they started, and what was wrong with the files: one sentence each."""

    runs: tuple[Run, ...]
    warnings: tuple[str, ...]


def load(paths: Iterable[Path], *, only_newest: bool = False, on_read: Callable[[], object] = lambda: None) -> Loaded:
    """Reads run folders. A run given twice counts once; two runs that share an id are both kept, with a warning.

    Args:
      only_newest: Keep a case whole in the newest run of a place alone, and of older ones its times: a thousand runs
        fit into memory.
      on_read: Called after each folder.
    """
    folders = list(paths)
    # From the newest on, since a newer run decides what is kept of an older one; the order given decides nothing.
    order = sorted(range(len(folders)), key=lambda index: _read_key(folders[index]), reverse=True)
    outdated = Outdated()
    runs: list[Run] = []
    known: dict[str, set[bytes]] = {}
    warnings: dict[int, list[str]] = {}
    with without_collecting():
        for index in order:
            own = warnings.setdefault(index, [])
            folder = RunFolder(folders[index])
            try:
                run = _load_run(folder, own)
            except RecordError as error:
                own.append(f"left out: {error}")
            else:
                if not _is_repeated(run, folder, known, own):
                    if only_newest:
                        run = outdated.cut(run)
                    # The cache has seals of its own, and may hold a part of a run's process files.
                    is_read = len(folders) <= MOST_CHECKED and read_sum(folder) is None
                    contents = check_contents(run, folder, reads=is_read)
                    if contents is Contents.CHANGED:
                        own.append(f"{folder.path}: {EDITED}")
                    runs.append(Run(run, folder, contents=contents))
            on_read()
    texts = (visible(hide_home(warning)) for index in sorted(warnings) for warning in warnings[index])
    return Loaded(tuple(reversed(runs)), tuple(texts))


def leave_out_confirming(loaded: Loaded) -> Loaded:
    """Without runs that only time a gate's suspects once more, unless there are no others."""
    others = tuple(run for run in loaded.runs if not run.manifest.confirms)
    return replace(loaded, runs=others or loaded.runs)


def _is_repeated(run: RunRecord, folder: RunFolder, known: dict[str, set[bytes]], warnings: list[str]) -> bool:
    """Whether the same run was read before; another of its id is told apart."""
    run_id, path = run.manifest.run_id, folder.path
    contents = _sum(run, folder)
    same = known.setdefault(run_id, set())
    if contents in same:
        warnings.append(f"{path}: run {run_id} was given more than once and is counted once")
        return True
    if same:
        warnings.append(f"{path}: another run has the id {run_id} but other contents; both are shown")
    same.add(contents)
    return False


def _sum(run: RunRecord, folder: RunFolder) -> bytes:
    """What tells two runs of one id apart: the sum of their commit marks, else of what was read."""
    kept = read_sum(folder)
    if kept is not None:
        return kept
    with suppress(RecordError):
        return hashlib.sha256(read_bytes(folder.mark)).hexdigest().encode()
    return hashlib.sha256(msgspec.json.encode(run)).hexdigest().encode()


def _read_key(path: Path) -> tuple[str, str, str]:
    """When a run began, its id, and its folder: what runs are ordered by."""
    head = _find_head(RunFolder(path))
    return ("", "", str(path)) if head is None else (head.started, head.run_id, str(path))


class _Head(msgspec.Struct):
    """What of a manifest decides the order of runs."""

    started: str
    run_id: str


def _find_head(folder: RunFolder) -> _Head | Manifest | None:
    """From the manifest's own file, else from the commit mark; None where neither can be read."""
    with suppress(RecordError, OSError, ValueError):
        return read_json(folder.manifest, _Head)
    with suppress(RecordError, OSError, ValueError):
        return read_run(folder).manifest
    return None


def find_start(folder: RunFolder) -> str | None:
    """When a run began, by its manifest or its commit mark; None where neither can be read."""
    head = _find_head(folder)
    return None if head is None else head.started


def choose_folders(folders: Iterable[Path], *, since: str = "", last: int | None = None) -> list[Path]:
    """The folders whose runs began at a time or after it, the newest of them, in the order in which they were given.

    Only their manifests are read. What has none that can be read is kept: `load` says what is wrong with it.

    Args:
      since: The beginning of an ISO 8601 time in UTC, such as 2026-11-22; empty for all.
      last: How many; None for all.
    """
    started = {folder: find_start(RunFolder(folder)) for folder in folders}
    kept = [folder for folder, begun in started.items() if begun is None or begun >= since]
    known = sorted((folder for folder in kept if started[folder] is not None), key=lambda folder: started[folder] or "")
    newest = set(known if last is None else known[max(0, len(known) - last) :])
    return [folder for folder in kept if folder in newest or started[folder] is None]


def _load_run(folder: RunFolder, warnings: list[str]) -> RunRecord:
    """One run, from its commit mark, or from the files that a run without one has left.

    Raises:
      RecordError: There is no run at this path, its manifest cannot be read, or it is of another schema version.
    """
    _require_run_folder(folder)
    try:
        manifest = read_manifest(folder)
    except UnreadableError as error:
        run = _renew(_read_mark_instead(folder, error, warnings), folder, warnings)
        return _drop_strays(run, folder, warnings)
    if folder.mark.exists():
        try:
            return _drop_strays(_renew(read_run(folder), folder, warnings), folder, warnings)
        except UnreadableError as error:
            warnings.append(f"{error}; its cases are read one by one")
    stopped = _read_stop(folder, warnings)
    cases, faults = read_cases(folder, manifest)
    warnings += faults
    run = RunRecord(manifest=manifest, cases=cases, stopped=stopped)
    run = _drop_strays(run, folder, warnings)
    warnings.append(f"{folder.path}: run {manifest.run_id} {_describe_end(run, folder)}")
    return run


def _read_mark_instead(folder: RunFolder, error: UnreadableError, warnings: list[str]) -> RunRecord:
    """The run of which the manifest cannot be read, from its commit mark, which holds the manifest too."""
    if not folder.mark.exists():
        raise error
    try:
        run = read_run(folder)
    except UnreadableError as other:
        raise UnreadableError(f"{error}; {other}") from other
    warnings.append(f"{error}; {folder.mark.name} holds it too")
    return run


def _describe_end(run: RunRecord, folder: RunFolder) -> str:
    """How a run without a commit mark ended, what it lacks, and what to do."""
    lost = len(run.lost())
    stop = run.stopped
    how = f"did not end (no usable {folder.mark.name})" if stop is None else f"stopped: {explain_stop(stop)}"
    if not lost:
        return f"{how}: no case lost; continue it with --resume"
    return f"{how}: {lost} of {counted(len(run.manifest.cases), 'case')} lost; continue it with --resume"


def _read_stop(folder: RunFolder, warnings: list[str]) -> Stop | None:
    """That a run stopped before its last case; None where nothing says so."""
    if not folder.stop.exists():
        return None
    try:
        return read_json(folder.stop, Stop)
    except UnreadableError as error:
        warnings.append(str(error))
        return None


def _require_run_folder(folder: RunFolder) -> None:
    """Says what a path is when it is no run folder.

    Raises:
      RecordError: It is none.
    """
    path = folder.path
    try:
        if _holds_manifest(folder):
            return
        if not path.exists():
            raise RecordError(f"{path}: no such folder")
        if not path.is_dir():
            raise RecordError(f"{path}: a file, not a run folder")
        if any(_holds_manifest(RunFolder(child)) for child in path.iterdir()):
            raise RecordError(f"{path}: contains runs but is not a run; give {path}/*")
    except (OSError, ValueError) as error:
        raise RecordError(f"{path}: cannot be read: {error}") from error
    raise RecordError(f"{path}: no run folder, since it has no {folder.manifest.name}")


def _holds_manifest(folder: RunFolder) -> bool:
    """Whether a folder is a run's: its commit mark holds the manifest too."""
    return folder.manifest.exists() or folder.mark.exists()


def _renew(run: RunRecord, folder: RunFolder, warnings: list[str]) -> RunRecord:
    """The run with summaries by today's statistics version, as far as process files are there."""
    run, faults = renew(run, folder)
    warnings += faults
    return run


def _drop_strays(run: RunRecord, folder: RunFolder, warnings: list[str]) -> RunRecord:
    """The run without cases that its manifest does not plan, or that it holds twice: nothing could place them."""
    planned = {case.id for case in run.manifest.cases}
    kept: dict[str, CaseRecord] = {}
    for case in run.cases:
        if case.id not in planned or case.id in kept:
            why = "recorded twice, counted once" if case.id in kept else "not planned by the run, left out"
            warnings.append(f"{folder.path}: case {case.name}: {why}")
        else:
            kept[case.id] = case
    return msgspec.structs.replace(run, cases=tuple(kept.values()))


def name_runs(runs: Iterable[Run]) -> tuple[str, ...]:
    """Their ids in order; a repeated one gets a number, so that each names one run."""
    seen: dict[str, int] = {}
    names = []
    for run in runs:
        name = run.manifest.run_id
        seen[name] = seen.get(name, 0) + 1
        names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return tuple(names)


@contextmanager
def without_collecting() -> Iterator[None]:
    """For what holds few cycles: looking for some among millions of values takes as long as reading them."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.freeze()  # else the next collection would look through all of it at once
            gc.enable()
