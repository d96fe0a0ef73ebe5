import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxmeter.harness.record import SCHEMA_VERSION, RunFolder, Stop, StopReason, write_json
from jaxmeter.harness.record.layout import SELF_TESTS
from jaxmeter.harness.record.self_test import keep_self_test
from jaxmeter.reporting.load import explain_stop, leave_out_confirming, load, name_runs
from jaxmeter.reporting.render import html, markdown
from jaxmeter.reporting.view import build
from tests import samples
from tests.reporting.mutated import mutate


def runs_of(loaded):
    return tuple(one.record for one in loaded.runs)


def test_a_run_is_read_back_as_it_was_written(tmp_path):
    run = samples.troubled_run()

    loaded = load([samples.write_run(tmp_path / "a", run)])

    assert runs_of(loaded) == (run,)
    assert loaded.warnings == ()


def test_runs_are_ordered_by_their_start_whatever_the_order_of_the_paths(tmp_path):
    early, late = samples.run(), samples.gpu_run()
    folders = [samples.write_run(tmp_path / "late", late), samples.write_run(tmp_path / "early", early)]

    assert runs_of(load(folders)) == runs_of(load(reversed(folders))) == (early, late)


def test_a_run_without_run_json_is_read_case_by_case_and_the_lost_ones_are_counted(tmp_path):
    folder = samples.write_run(tmp_path / "a", samples.troubled_run(), cut_short=True)

    loaded = load([folder])

    assert [case.name for case in loaded.runs[0].record.lost()] == ["lost[dtype=float32,n=10000]"]
    assert loaded.runs[0].record.ended is None
    assert loaded.warnings[0].endswith(": 1 of 2 cases lost; --resume goes on with it")


def test_a_run_that_has_lost_its_manifest_is_read_from_run_json_which_holds_it_too(tmp_path):
    run = samples.troubled_run()
    folder = samples.write_run(tmp_path / "a", run)
    (folder / "manifest.json").unlink()

    loaded = load([folder])

    assert runs_of(loaded) == (run,)
    assert "manifest.json: cannot be read" in loaded.warnings[0]
    assert loaded.warnings[0].endswith("; run.json holds it too")


def test_self_tests_beside_runs_are_no_runs(tmp_path):
    folder = samples.write_run(tmp_path / "a", samples.run())
    keep_self_test(tmp_path, samples.self_test())

    loaded = load([folder, tmp_path, tmp_path / SELF_TESTS])

    assert len(loaded.runs) == 1
    assert loaded.warnings[0].endswith("holds runs but is none itself; give " + str(tmp_path) + "/*")
    assert loaded.warnings[1].endswith("no run folder, since it has no manifest.json")


def test_a_run_that_stopped_says_why(tmp_path):
    folder = samples.write_run(tmp_path / "a", samples.troubled_run(), cut_short=True)
    stop = Stop(at="2026-08-22T10:45:30Z", reason=StopReason.BUDGET_USED, budget_s=60.0)
    write_json(RunFolder(folder).stop, stop)

    loaded = load([folder])

    assert loaded.runs[0].record.stopped == stop
    assert f"stopped: {explain_stop(stop)}: 1 of 2 cases lost" in loaded.warnings[0]


def test_a_stop_that_cannot_be_read_is_named_and_the_cases_are_read_all_the_same(tmp_path):
    run = samples.troubled_run()
    folder = samples.write_run(tmp_path / "a", run, cut_short=True)
    (folder / "stopped.json").write_bytes(b'{"at"')

    loaded = load([folder])

    assert loaded.runs[0].record.cases == run.cases
    assert "stopped.json: not a record" in loaded.warnings[0]


def test_a_damaged_run_json_is_named_and_the_cases_are_read_one_by_one(tmp_path):
    run = samples.run()
    folder = samples.write_run(tmp_path / "a", run)
    (folder / "run.json").write_bytes(b'{"manifest"')

    loaded = load([folder])

    assert loaded.runs[0].record.cases == run.cases
    assert "run.json: not a record" in loaded.warnings[0]


def test_a_damaged_case_counts_as_lost_and_is_named(tmp_path):
    folder = samples.write_run(tmp_path / "a", samples.run(), cut_short=True)
    (folder / "cases" / "00" / "case.json").write_bytes(b"\xff")

    loaded = load([folder])

    assert len(loaded.runs[0].record.lost()) == 1
    assert "00/case.json: not a record" in loaded.warnings[0]
    assert loaded.warnings[0].endswith("this case counts as lost")


def test_a_run_given_twice_counts_once(tmp_path):
    folder = samples.write_run(tmp_path / "a", samples.run())

    loaded = load([folder, folder])

    assert len(loaded.runs) == 1
    assert "given more than once" in loaded.warnings[0]


def test_two_runs_of_one_id_are_both_kept_with_a_warning_and_told_apart(tmp_path):
    first, second = samples.run(), samples.sweep_run()

    loaded = load([samples.write_run(tmp_path / "a", first), samples.write_run(tmp_path / "b", second)])

    assert len(loaded.runs) == 2
    assert "other contents; both are shown" in loaded.warnings[0]
    assert name_runs(runs_of(loaded)) == (first.manifest.run_id, f"{first.manifest.run_id} (2)")


def test_a_case_that_no_plan_names_is_left_out_with_a_warning(tmp_path):
    run = samples.run()
    stray = msgspec.structs.replace(run.cases[0], id="stray", name="stray")

    loaded = load([samples.write_run(tmp_path / "a", msgspec.structs.replace(run, cases=(*run.cases, stray)))])

    assert loaded.runs[0].record.cases == run.cases
    assert loaded.warnings[0].endswith("case stray: not planned by the run, left out")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: None, "no such folder"),
        (lambda path: path.write_text("notes"), "a file, not a run folder"),
        (lambda path: path.mkdir(), "no run folder, since it has no manifest.json"),
        (lambda path: samples.write_run(path / "run", samples.run()), "holds runs but is none itself; give"),
        (lambda path: (path / "manifest.json").mkdir(parents=True), "cannot be read"),
    ],
)
def test_what_is_no_run_is_named_and_left_out(tmp_path, make, said):
    path = tmp_path / "thing"
    make(path)

    loaded = load([path])

    assert loaded.runs == ()
    assert len(loaded.warnings) == 1
    assert str(path) in loaded.warnings[0]
    assert said in loaded.warnings[0]


ADVICE = {1: "measure again", 99: "use a newer jaxmeter"}


@pytest.mark.parametrize(("version", "advice"), ADVICE.items(), ids=["older", "newer"])
@pytest.mark.parametrize("files", [("manifest",), ("mark",), ("manifest", "mark")], ids="+".join)
def test_a_run_of_another_schema_version_is_left_out_with_what_to_do_and_the_others_are_read(
    tmp_path, files, version, advice
):
    other = samples.gpu_run()
    folders = [samples.write_run(tmp_path / name, run) for name, run in (("a", samples.run()), ("b", other))]
    changed = {"schema_version": version, "cases": "other"}
    paths = {name: getattr(RunFolder(folders[0]), name) for name in files}
    for name, path in paths.items():
        path.write_text(json.dumps(changed if name == "manifest" else {"manifest": changed}))

    loaded = load(folders)

    assert runs_of(loaded) == (other,)
    (warning,) = loaded.warnings
    assert warning.startswith(
        f"left out: {paths[files[0]]}: schema version {version}, this jaxmeter reads {SCHEMA_VERSION}; "
    )
    assert warning.endswith(advice)


@pytest.mark.parametrize(("version", "advice"), ADVICE.items(), ids=["older", "newer"])
def test_a_damaged_manifest_does_not_hide_that_the_run_is_of_another_schema_version(tmp_path, version, advice):
    folder = RunFolder(samples.write_run(tmp_path, samples.run()))
    folder.manifest.write_text("{")
    folder.mark.write_text(json.dumps({"manifest": {"schema_version": version}}))

    loaded = load([tmp_path])

    assert loaded.runs == ()
    assert loaded.warnings[0].startswith(f"left out: {folder.mark}: schema version {version}")
    assert loaded.warnings[0].endswith(advice)


def test_a_run_of_which_nothing_can_be_read_is_left_out_with_all_that_is_damaged(tmp_path):
    folder = RunFolder(samples.write_run(tmp_path, samples.run()))
    folder.manifest.write_text("{")
    folder.mark.write_text("[")

    loaded = load([tmp_path])

    assert loaded.runs == ()
    (warning,) = loaded.warnings
    assert warning.startswith(f"left out: {folder.manifest}: not a record")
    assert f"; {folder.mark}: not a record" in warning


@pytest.mark.parametrize(
    ("stop", "words"),
    [
        (Stop(at="", reason=StopReason.INTERRUPTED), "it was interrupted"),
        (Stop(at="", reason=StopReason.BUDGET_USED), "its budget is used up"),
        (Stop(at="", reason=StopReason.BUDGET_USED, budget_s=0.0), "the budget of 0 s is used up"),
        (Stop(at="", reason=StopReason.BUDGET_USED, budget_s=61.5), "the budget of 61.5 s is used up"),
    ],
)
def test_why_a_run_stopped_is_told_in_words(stop, words):
    assert explain_stop(stop) == words


def test_a_run_keeps_its_folder(tmp_path):
    folder = samples.write_run(tmp_path / "a", samples.run())

    assert load([folder]).runs[0].folder == RunFolder(folder)


def test_the_home_folder_is_shown_as_a_tilde(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))

    assert load([tmp_path / "none"]).warnings == ("left out: ~/none: no such folder",)


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_no_content_of_a_file_is_a_crash(data):
    with TemporaryDirectory() as name:
        for file in ("manifest.json", "run.json", "cases/00/case.json"):
            folder = samples.write_run(Path(name), samples.run())
            (folder / file).write_bytes(data)
            loaded = load([folder])

            assert loaded.warnings or (file != "manifest.json" and runs_of(loaded) == (samples.run(),))


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_a_run_with_any_value_changed_is_shown_or_left_out_by_name(data):
    record = json.loads(msgspec.json.encode(samples.troubled_run()))
    mutate(data, record)
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "manifest.json").write_text(json.dumps(record.get("manifest")))
        (folder / "run.json").write_text(json.dumps(record))

        loaded = load([folder])
        assert loaded.runs or loaded.warnings
        if loaded.runs:
            page = build(loaded)
            assert "</html>" in html.render(page)
            assert markdown.render(page)


@pytest.mark.parametrize("file", ["manifest.json", "run.json", "cases/00/case.json", "stopped.json"])
def test_a_pipe_in_the_place_of_a_file_is_named_and_never_waited_for(tmp_path, file):
    folder = samples.write_run(tmp_path, samples.run())
    if file not in ("manifest.json", "run.json"):
        (folder / "run.json").unlink()
    (folder / file).unlink(missing_ok=True)
    os.mkfifo(folder / file)

    loaded = load([folder])

    assert any(f"{folder / file}: cannot be read: is no regular file" in warning for warning in loaded.warnings)
    assert len(loaded.runs) == 1


def test_a_damaged_manifest_costs_nothing_where_run_json_holds_it(tmp_path):
    folder = samples.write_run(tmp_path, samples.run())
    (folder / "manifest.json").write_text("{")

    loaded = load([folder])

    assert runs_of(loaded) == (samples.run(),)
    assert "run.json holds it too" in loaded.warnings[0]


def test_runs_that_only_confirm_are_left_out_where_there_are_others(tmp_path):
    folders = [
        samples.write_run(tmp_path / name, samples.run(run_id=name, confirms=name == "again"))
        for name in ("a", "again")
    ]

    assert [one.manifest.run_id for one in leave_out_confirming(load(folders)).runs] == ["a"]
    assert [one.manifest.run_id for one in leave_out_confirming(load(folders[1:])).runs] == ["again"]
