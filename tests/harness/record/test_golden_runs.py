"""Runs as earlier versions left them: they stay readable, and what they say stays what they said."""

import getpass
import gzip
import json
import re
from itertools import groupby
from pathlib import Path

import jsonschema
import pytest

from jaxmeter.harness.metrics.statistics import VERSION
from jaxmeter.harness.metrics.within import summarise
from jaxmeter.harness.record import (
    CaseRecord,
    ProcessRecord,
    RunFolder,
    json_schema,
    read_json,
    read_manifest,
    read_run,
)

GOLDEN = Path(__file__).parents[2] / "golden"
FOLDERS = sorted(GOLDEN.glob("v*"))

every_version = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


def processes_of(folder: Path, case: CaseRecord) -> list[list[ProcessRecord]]:
    """The processes of each process; files are named by process index first."""
    paths = sorted((folder / "cases" / case.id / "processes").glob("*.json.gz"))
    return [
        [read_json(path, ProcessRecord) for path in group]
        for _, group in groupby(paths, key=lambda path: path.name[:2])
    ]


@every_version
def test_a_run_of_an_earlier_version_stays_readable(folder):
    run_folder = RunFolder(folder)
    run = read_run(run_folder)

    assert run.manifest == read_manifest(run_folder)
    assert run.cases == tuple(read_json(run_folder.case(case.id).record, CaseRecord) for case in run.manifest.cases)
    assert run.lost() == ()


@every_version
def test_summaries_made_again_from_the_processes_are_those_stored(folder):
    run = read_run(RunFolder(folder))
    for planned, case in zip(run.manifest.cases, run.cases, strict=True):
        processes = processes_of(folder, case)
        assert len(processes) == case.processes

        again = {item.name: summarise(processes, item.name, planned.baseline) for item in case.variants}

        if case.statistics_version == VERSION:  # else they were made by other rules
            assert again == {item.name: item.outcomes["timing"] for item in case.variants}


@every_version
def test_a_run_of_an_earlier_version_fits_the_schema(folder):
    validator = jsonschema.Draft202012Validator(json_schema())

    validator.validate(json.loads((folder / "run.json").read_text()))
    for path in folder.rglob("*.json.gz"):
        validator.validate(json.loads(gzip.decompress(path.read_bytes())))


@every_version
def test_a_run_holds_no_path_of_the_machine_and_no_user(folder):
    text = "".join(path.read_text() for path in folder.rglob("*.json"))

    assert not re.findall(r'"[^"]*(?:/home|/root|/Users|/tmp|/work)\b[^"]*"', text)
    assert not re.findall(rf"/{re.escape(getpass.getuser())}\b", text)
