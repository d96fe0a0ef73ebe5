import json
import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxmeter.document import markdown
from jaxmeter.harness.record import SCHEMA_VERSION, RunFolder, Stop, StopReason, write_json
from jaxmeter.reporting.load import explain_stop, leave_out_confirming, load, name_runs
from jaxmeter.reporting.render import html
from jaxmeter.reporting.view import build
from jaxmeter.reporting.view.overview import summarise
from tests import samples
from tests.golden_texts import check_golden_scenes
from tests.reporting.mutated import mutate


def runs_of(loaded):
    return tuple(one.record for one in loaded.runs)


def test_runs_are_read_back_and_ordered_by_their_start_whatever_the_order_of_the_paths(tmp_path):
    early, late = samples.troubled_run(), samples.gpu_run()
    folders = [samples.write_run(tmp_path / "late", late), samples.write_run(tmp_path / "early", early)]

    for order in (folders, folders[::-1]):
        loaded = load(order)
        assert runs_of(loaded) == (early, late)
        assert loaded.warnings == ()
        assert loaded.runs[0].folder == RunFolder(folders[1])


LOST = "lost[dtype=float32,n=10000]"
"""The case of which the troubled run has no record."""

ODD = "odd[dtype=float32,n=10000]"
STOP = Stop(at="2026-08-22T10:45:30Z", reason=StopReason.BUDGET_USED, budget_s=60.0)


def spoil(file, data=None):
    """Writes other bytes in place of a file; without any it is gone."""
    return lambda folder: (folder / file).unlink() if data is None else (folder / file).write_bytes(data)


def make_pipe(file):
    def change(folder):
        (folder / file).unlink(missing_ok=True)
        os.mkfifo(folder / file)

    return change


def add_stray_case(folder):
    run = samples.troubled_run()
    stray = msgspec.structs.replace(run.cases[0], id="stray", name="stray")
    write_json(folder / "run.json", msgspec.structs.replace(run, cases=(*run.cases, stray)))


def spoil_all(folder):
    spoil("manifest.json", b"{")(folder)
    spoil("run.json", b"[")(folder)


WHOLE, CUT = False, True
DAMAGES = {
    "no run.json": (CUT, lambda folder: None, [LOST]),
    "no manifest": (WHOLE, spoil("manifest.json"), [LOST]),
    "a damaged manifest": (WHOLE, spoil("manifest.json", b"{"), [LOST]),
    "a run that stopped": (CUT, lambda folder: write_json(RunFolder(folder).stop, STOP), [LOST]),
    "a stop that cannot be read": (CUT, spoil("stopped.json", b'{"at"'), [LOST]),
    "a damaged run.json": (WHOLE, spoil("run.json", b'{"manifest"'), [LOST]),
    "a damaged case": (CUT, spoil("cases/00/case.json", b"\xff"), [ODD, LOST]),
    "a case that no plan names": (WHOLE, add_stray_case, [LOST]),
    "a pipe for a manifest": (WHOLE, make_pipe("manifest.json"), [LOST]),
    "a pipe for run.json": (WHOLE, make_pipe("run.json"), [LOST]),
    "a pipe for a case": (CUT, make_pipe("cases/00/case.json"), [ODD, LOST]),
    "a pipe for a stop": (CUT, make_pipe("stopped.json"), [LOST]),
    "nothing that can be read": (WHOLE, spoil_all, None),
}
"""Whether a run was cut short, what became of its folder, and which cases are then lost; None where it is left out."""

NO_RUNS = {
    "nothing": lambda path: None,
    "a file": lambda path: path.write_text("notes"),
    "an empty folder": Path.mkdir,
    "a folder of runs": lambda path: samples.write_run(path / "run", samples.run()),
    "a folder in place of a manifest": lambda path: (path / "manifest.json").mkdir(parents=True),
}


def write_warnings(loaded, path):
    """With the reader's own words on what is malformed left out."""
    return [re.sub(r"damaged: [^;]*", "damaged", one.replace(str(path), "RUN")) for one in loaded.warnings]


def test_what_is_damaged_is_named_by_a_golden_text_and_the_rest_is_read(tmp_path):
    said = {}
    for number, (rule, (cut_short, damage, lost)) in enumerate(DAMAGES.items()):
        folder = samples.write_run(tmp_path / str(number), samples.troubled_run(), cut_short=cut_short)
        damage(folder)
        loaded = load([folder])
        said[rule] = write_warnings(loaded, folder)
        assert len(said[rule]) >= 1
        records = runs_of(loaded)
        assert [[case.name for case in one.lost()] for one in records] == ([] if lost is None else [lost]), rule
        for one in records:
            assert one.cases == tuple(case for case in samples.troubled_run().cases if case.name not in lost), rule
            assert one.stopped == (STOP if rule == "a run that stopped" else None)
    for rule, make in NO_RUNS.items():
        make(tmp_path / rule)
        loaded = load([tmp_path / rule])
        assert runs_of(loaded) == ()
        said[f"no run: {rule}"] = write_warnings(loaded, tmp_path / rule)

    check_golden_scenes("left-out", said)


def test_a_run_given_twice_counts_once_and_two_of_one_id_are_both_kept_and_told_apart(tmp_path):
    first, second = samples.run(), samples.sweep_run()
    folders = [samples.write_run(tmp_path / "a", first), samples.write_run(tmp_path / "b", second)]

    twice, both = load([folders[0]] * 2), load(folders)

    assert (len(twice.runs), len(both.runs)) == (1, 2)
    assert "given more than once" in twice.warnings[0]
    assert "other contents; both are shown" in both.warnings[0]
    assert name_runs(runs_of(both)) == (first.manifest.run_id, f"{first.manifest.run_id} (2)")


@pytest.mark.parametrize(("version", "advice"), [(1, "measure again"), (99, "use a newer jaxmeter")])
@pytest.mark.parametrize(
    "files", [("manifest",), ("mark",), ("manifest", "mark"), ("mark", "damaged manifest")], ids="+".join
)
def test_a_run_of_another_schema_version_is_left_out_with_what_to_do_and_the_others_are_read(
    tmp_path, files, version, advice
):
    other = samples.gpu_run()
    folders = [samples.write_run(tmp_path / name, run) for name, run in (("a", samples.run()), ("b", other))]
    changed = {"schema_version": version, "cases": "other"}
    here = RunFolder(folders[0])
    for name in files:
        text = {"manifest": json.dumps(changed), "mark": json.dumps({"manifest": changed})}.get(name, "{")
        getattr(here, name.split()[-1]).write_text(text)

    loaded = load(folders)

    assert runs_of(loaded) == (other,)
    (warning,) = loaded.warnings
    said = f"left out: {getattr(here, files[0])}: schema version {version}, this jaxmeter reads {SCHEMA_VERSION}; "
    assert warning.startswith(said)
    assert warning.endswith(advice)


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


@settings(deadline=None, max_examples=settings.default.max_examples * 3 // 5)
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
            assert markdown.write(summarise(page, in_full=True))


def test_runs_that_only_confirm_are_left_out_where_there_are_others(tmp_path):
    runs = [samples.run(run_id=name, confirms=name == "again") for name in ("a", "again")]
    folders = [samples.write_run(tmp_path / run.manifest.run_id, run) for run in runs]

    assert runs_of(leave_out_confirming(load(folders))) == (runs[0],)
    assert runs_of(leave_out_confirming(load(folders[1:]))) == (runs[1],)
