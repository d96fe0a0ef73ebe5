import os
from pathlib import Path

import pytest

from jaxmeter.cli.inputs import FOLDER, name_report
from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.record import RecordError, RunFolder
from jaxmeter.harness.record.files import LARGEST_RECORD, SELF_TESTS
from jaxmeter.launch.options import UsageError
from jaxmeter.launch.runs import (
    WITH_CAPTURES,
    plan_run,
    plan_self_test,
    read_record,
    take_store,
)
from jaxmeter.reporting.store.captures import OPTION
from tests import samples

ID = "2026-08-22T10-15-30Z-cpu-1f0c9a7"


def test_a_run_gets_the_new_id_and_the_default_folder():
    run = plan_run(["--quick"], ID)

    assert run.arguments == ("--quick", "--run-id", ID)
    assert run.folder == Path("results", ID)


@pytest.mark.parametrize("out", [["--out", "/data/runs"], ["--out=/data/runs"]])
def test_a_run_is_written_where_out_says(out):
    run = plan_run(out, ID)

    assert run.arguments == (*out, "--run-id", ID)
    assert run.folder == Path("/data/runs", ID)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["--quick", "--out", "s3://b/n"], ("s3://b/n", [], ["--quick"])),
        (["--with-captures", "--out=s3://b/n", "--quick"], ("s3://b/n", ["--with-captures"], ["--quick"])),
        (["--quick", "--out", "here"], (None, [], ["--quick", "--out", "here"])),
        (["--quick"], (None, [], ["--quick"])),
    ],
)
def test_the_store_and_the_options_of_the_push_are_taken_from_those_of_the_measurement(given, expected):
    assert take_store(given) == expected


@pytest.mark.parametrize("given", [["--with-captures"], ["--with-captures", "--out", "here"]])
def test_captures_are_asked_for_with_a_store_only(given):
    with pytest.raises(UsageError, match="--with-captures is about a store, --out s3://bucket/folder"):
        take_store(given)


def test_the_option_for_captures_is_called_as_the_commands_call_it():
    assert WITH_CAPTURES == OPTION


@pytest.mark.parametrize("given", [["--run-id", "mine"], ["--run-id=mine"]])
def test_an_id_of_the_users_own_is_kept(given):
    run = plan_run(given, ID)

    assert run.arguments == tuple(given)
    assert run.folder == Path("results/mine")


def test_a_run_resumed_by_its_id_is_looked_for_where_out_says_and_keeps_its_id():
    arguments = ["--out", "there", "--resume", "earlier"]

    run = plan_run(arguments, ID)

    assert run.arguments == tuple(arguments)
    assert run.folder == Path("there/earlier")


def test_a_run_may_be_resumed_by_its_folder(tmp_path):
    run = plan_run(["--resume", str(tmp_path)], ID)

    assert run.arguments == ("--resume", str(tmp_path))
    assert run.folder == tmp_path


@pytest.mark.parametrize(("code", "expected"), [(0, True), (1, False), (2, False), (3, True), (130, False)])
def test_a_complete_and_an_incomplete_run_are_reported_and_nothing_else(tmp_path, code, expected):
    run = plan_run(["--out", str(tmp_path)], ID)
    run.folder.mkdir()
    (run.folder / "manifest.json").touch()

    assert run.can_be_reported(code) is expected


def test_a_rehearsal_is_not_reported(tmp_path):
    run = plan_run(["--out", str(tmp_path), "--resume", ID, "--dry-run"], ID)
    run.folder.mkdir()
    (run.folder / "manifest.json").touch()

    assert not run.can_be_reported(0)


def test_a_harness_that_left_no_run_is_not_reported(tmp_path):
    """`--help` ends with exit code 0 too."""
    assert not plan_run(["--out", str(tmp_path), "--help"], ID).can_be_reported(0)


@pytest.mark.parametrize("out", [["--out", "/data/runs"], ["--out=/data/runs"]])
def test_a_self_test_is_kept_beside_the_runs_and_leaves_none_to_report_on(out, tmp_path):
    planned = plan_self_test(["--machine", "lab 3", *out])

    assert planned.arguments == ("--machine", "lab 3", *out)
    assert planned.folder == Path("/data/runs", SELF_TESTS)
    assert (planned.verb, planned.is_rehearsal) == ("self-test", False)
    assert not planned.can_be_reported(0)


def test_the_launcher_and_the_report_call_the_page_the_same():
    run = plan_run([], ID)
    record = samples.run(run_id=ID)

    assert run.page == FOLDER / f"report-{name_report([Run(record, RunFolder(run.folder))])}.html"


def test_a_file_of_a_run_that_would_never_end_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "manifest.json")
    with (tmp_path / "run.json").open("wb") as file:
        file.truncate(LARGEST_RECORD + 1)
    (tmp_path / "fine.json").write_text('{"a": 1}')

    (tmp_path / "deep.json").write_text("[" * 10**5)

    for name in ("manifest.json", "run.json", "deep.json", "gone.json"):
        with pytest.raises(RecordError, match=f"{name}: cannot be read"):
            read_record(tmp_path / name)
    assert read_record(tmp_path / "fine.json") == {"a": 1}
