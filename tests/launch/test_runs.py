import os
from pathlib import Path

import pytest

from jaxmeter.cli.inputs import FOLDER, name_report
from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.record import RecordError, RunFolder
from jaxmeter.harness.record.files import LARGEST_RECORD, SELF_TESTS
from jaxmeter.launch.options import UsageError
from jaxmeter.launch.runs import plan_run, plan_self_test, read_record, take_store
from jaxmeter.reporting.store.push import OPTION
from tests import samples

ID = "2026-08-22T10-15-30Z-cpu-1f0c9a7"


@pytest.mark.parametrize(
    ("arguments", "new", "folder"),
    [
        (["--quick"], ["--run-id", ID], f"results/{ID}"),
        (["--out=/data/runs"], ["--run-id", ID], f"/data/runs/{ID}"),
        (["--run-id=mine"], [], "results/mine"),
        (["--out", "there", "--resume", "earlier"], [], "there/earlier"),
        (["--out", "there", "--resume", "/usr"], [], "/usr"),  # a folder
    ],
)
def test_a_run_is_written_where_out_says_by_its_own_id_or_the_new_one(arguments, new, folder):
    run = plan_run(arguments, ID)

    assert run.arguments == (*arguments, *new)
    assert run.folder == Path(folder)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["--quick", "--out", "s3://b/n"], ("s3://b/n", [], ["--quick"])),
        (["--with-captures", "--out=s3://b/n", "--quick"], ("s3://b/n", ["--with-captures"], ["--quick"])),
        (["--quick", "--out", "here"], (None, [], ["--quick", "--out", "here"])),
    ],
)
def test_the_store_and_the_options_of_the_push_are_taken_from_those_of_the_measurement(given, expected):
    assert take_store(given) == expected


@pytest.mark.parametrize("out", [[], ["--out", "here"]])
def test_captures_are_asked_for_with_a_store_only_by_the_option_of_the_push(out):
    with pytest.raises(UsageError, match="--with-captures is about a store, --out s3://bucket/folder"):
        take_store([OPTION, *out])


@pytest.mark.parametrize(
    ("code", "options", "expected"),
    [(0, [], True), (2, [], False), (3, [], True), (130, [], False), (0, ["--dry-run"], False)],
)
def test_a_complete_and_an_incomplete_run_are_reported_and_nothing_else(tmp_path, code, options, expected):
    run = plan_run(["--out", str(tmp_path), *options], ID)

    assert not run.can_be_reported(code)  # as after --help
    run.folder.mkdir()
    (run.folder / "manifest.json").touch()
    assert run.can_be_reported(code) is expected


def test_a_self_test_is_kept_beside_the_runs_and_leaves_none_to_report_on():
    planned = plan_self_test(["--machine", "lab 3", "--out=/data/runs"])

    assert planned.arguments == ("--machine", "lab 3", "--out=/data/runs")
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
