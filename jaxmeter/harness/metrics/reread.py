"""Summaries of a run as they are read: the stored ones, and made again from the process files where these decide."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from jaxmeter.harness.metrics.plausibility import is_sound
from jaxmeter.harness.metrics.statistics import VERSION
from jaxmeter.harness.metrics.summary import summarise_case
from jaxmeter.harness.record.cases import CaseRecord, PlannedCase
from jaxmeter.harness.record.files import UnreadableError, read_json
from jaxmeter.harness.record.layout import CaseFolder, RunFolder
from jaxmeter.harness.record.processes import ProcessRecord
from jaxmeter.harness.record.runs import Manifest, RunRecord
from jaxmeter.harness.record.settings import Settings


def read_process(path: Path, planned: PlannedCase) -> ProcessRecord:
    """Read the file of a process of a case.

    Raises:
      UnreadableError: It cannot be read, or what it says cannot have been measured of the case.
    """
    process = read_json(path, ProcessRecord)
    names = {item.name for item in planned.variants}
    timed = {item.variant for item in process.variants}
    if process.case != planned.id or not names >= {*process.outcomes, *timed}:
        raise UnreadableError(f"{path}: of another case than {planned.name}")
    if not is_sound(process):
        raise UnreadableError(f"{path}: holds times that cannot have been measured")
    return process


def read_cases(folder: RunFolder, manifest: Manifest) -> tuple[tuple[CaseRecord, ...], list[str]]:
    """Return the summaries of a run without a commit mark, and what is wrong with its files.

    A summary that is missing, damaged or older than its process files is made again.
    """
    cases: list[CaseRecord] = []
    warnings: list[str] = []
    planned = {case.id: case for case in manifest.cases}
    for path in sorted(folder.cases.glob("*")):
        own, stored, damage = CaseFolder(path), None, ""
        if own.record.exists():
            try:
                stored = read_json(own.record, CaseRecord)
            except UnreadableError as error:
                damage = str(error)
        files = own.processes() if path.name in planned else []
        if files and (stored is None or stored.statistics_version < VERSION or stored.files != len(files)):
            again, faults = _make_again(planned[path.name], manifest.settings, files, stored)
            stored, warnings = again or stored, [*warnings, *faults]
        if damage:
            warnings.append(f"{damage}; " + ("this case counts as lost" if stored is None else "summed up again"))
        if stored is not None:
            cases.append(stored)
    return tuple(cases), warnings


def renew(run: RunRecord, folder: RunFolder) -> tuple[RunRecord, list[str]]:
    """Return the run with summaries by today's statistics version, and what is wrong with its files.

    A summary stays as it is where no process files are there. Those of current summaries are not opened.
    """
    cases: list[CaseRecord] = []
    warnings: list[str] = []
    planned = {case.id: case for case in run.manifest.cases}
    for case in run.cases:
        is_old = case.statistics_version < VERSION and case.id in planned
        files = folder.case(case.id).processes() if is_old else []
        again, faults = _make_again(planned[case.id], run.manifest.settings, files, case) if files else (None, [])
        cases.append(again or case)
        warnings += faults
    return msgspec.structs.replace(run, cases=tuple(cases)), warnings


def _make_again(
    planned: PlannedCase, settings: Settings, files: Sequence[Path], stored: CaseRecord | None
) -> tuple[CaseRecord | None, list[str]]:
    """The summary of the process files of a case; None where none of them can be read.

    Args:
      stored: The earlier summary, which says of how many files it is.
    """
    processes: list[ProcessRecord] = []
    warnings: list[str] = []
    if stored is not None and stored.files > len(files):
        lacks = f"{stored.files - len(files)} of {stored.files} process files are missing"
        warnings.append(f"{files[0].parent}: {lacks}; summed up from the others")
    for path in files:
        try:
            process = read_process(path, planned)
        except UnreadableError as error:
            warnings.append(f"{error}; this process is left out")
            continue
        if process.left_out is None and process in processes:
            warnings.append(f"{path}: a copy of another process file; counted once")
        else:
            processes.append(process)
    if not processes:
        return None, warnings
    try:
        return summarise_case(planned, settings, processes), warnings
    except (ValueError, ArithmeticError, LookupError) as error:  # the files may be anybody's
        return None, [*warnings, f"{files[0].parent}: cannot be summed up: {error}"]
