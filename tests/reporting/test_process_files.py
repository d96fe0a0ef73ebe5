"""Where process files are there, they decide: a summary that is missing, damaged or older is made again from them."""

import gzip
import json
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxmeter.harness.metrics.statistics import VERSION
from jaxmeter.harness.record import RunFolder, Status, write_json
from jaxmeter.reporting.load import load
from jaxmeter.reporting.render import html
from jaxmeter.reporting.view import build
from tests import samples
from tests.harness.raw import clean, process, variant
from tests.reporting.mutated import mutate

PLANNED = samples.planned_case(variants=("selu:eager", "selu:jit"))
OLD = VERSION - 1


def list_processes():
    """A check, and three timing processes."""
    both = ("selu:eager", "selu:jit")
    common = {"case": PLANNED.id, "plan": {"numerics": both, "timing": both}}
    outcomes = {name: {"numerics": samples.numerics()} for name in both}
    check = {"kind": "check", "assignments": {"numerics": both}, "outcomes": outcomes, "elapsed_s": 2.0, **common}
    timing = {"kind": "timing", "assignments": {"timing": both}, "elapsed_s": 1.0, **common}
    timed = (process(*(variant(name, *clean(2e-3, 2e-3)) for name in both), index=index) for index in range(3))
    replace = msgspec.structs.replace
    return [replace(process(), **check), *(replace(one, **timing) for one in timed)]


def write_processes(folder: Path, processes) -> list[Path]:
    own, paths = RunFolder(folder).case(PLANNED.id), []
    for record in processes:
        paths.append(own.next_process(record.kind))
        write_json(paths[-1], record)
    return paths


def write_run(folder: Path, *, version: int = OLD, marked: bool = True, stored: bool = True) -> list[Path]:
    """A run with the summary of another time, 1 ms a call, beside process files that say 2 ms."""
    case = msgspec.structs.replace(samples.fast_case(PLANNED, jit_s=1e-3), statistics_version=version, files=4)
    run = samples.run((PLANNED, case))
    write_json(folder / "manifest.json", run.manifest)
    if stored:
        write_json(RunFolder(folder).case(PLANNED.id).record, case)
    if marked:
        write_json(folder / "run.json", run)
    return write_processes(folder, list_processes())


def read_only_case(folder: Path):
    return load([folder]).runs[0].cases[0]


def jit_s(folder: Path) -> float:
    return round(read_only_case(folder).variant("selu:jit").read("execution_s").estimate, 5)


@pytest.mark.parametrize("marked", [True, False])
def test_an_older_summary_is_made_again_on_reading(tmp_path, marked):
    write_run(tmp_path, marked=marked)

    case = read_only_case(tmp_path)

    assert jit_s(tmp_path) == 2e-3
    assert (case.record.statistics_version, case.record.files, case.record.processes) == (VERSION, 4, 3)
    assert case.record.elapsed_s == 5.0


@pytest.mark.parametrize("how", ["missing", "damaged", "of fewer files"])
def test_of_a_run_that_did_not_end_a_summary_that_is_no_use_is_made_again(tmp_path, how):
    write_run(tmp_path, version=VERSION, marked=False, stored=how != "missing")
    if how == "damaged":
        RunFolder(tmp_path).case(PLANNED.id).record.write_bytes(b"{")
    if how == "of fewer files":
        write_processes(tmp_path, [msgspec.structs.replace(list_processes()[-1], index=3)])

    assert jit_s(tmp_path) == 2e-3
    assert read_only_case(tmp_path).record.processes == (4 if how == "of fewer files" else 3)


@pytest.mark.parametrize("marked", [True, False])
def test_process_files_of_current_summaries_are_not_opened(tmp_path, marked):
    for path in write_run(tmp_path, version=VERSION, marked=marked):
        path.write_bytes(b"broken")

    assert jit_s(tmp_path) == 1e-3
    assert not [text for text in load([tmp_path]).warnings if "processes" in text]


@pytest.mark.parametrize(
    ("spoil", "warnings"),
    [
        (Path.unlink, 0),
        (lambda path: path.write_bytes(b"broken"), 4),
        (lambda path: path.rename(path.with_name(f"{path.name[2:4]}.json.gz")), 0),
    ],
    ids=["there are none", "none can be read", "they are of an older jaxmeter and have no outcomes"],
)
def test_without_process_files_an_older_summary_is_shown_with_the_version_that_made_it(tmp_path, spoil, warnings):
    for path in write_run(tmp_path):
        spoil(path)

    assert jit_s(tmp_path) == 1e-3
    assert read_only_case(tmp_path).record.statistics_version == OLD
    assert len(load([tmp_path]).warnings) == warnings


def test_a_damaged_process_file_is_named_and_left_out(tmp_path):
    _, damaged, *_ = write_run(tmp_path)
    damaged.write_bytes(b"broken")

    loaded = load([tmp_path])

    outcome = loaded.runs[0].cases[0].variant("selu:jit").outcomes["timing"]
    assert len(outcome.values["execution_s"]) == 2
    assert [str(damaged) in text for text in loaded.warnings] == [True]


@pytest.mark.parametrize("marked", [True, False])
def test_process_files_that_somebody_removed_are_said(tmp_path, marked):
    *_, last = write_run(tmp_path, marked=marked)
    last.unlink()

    loaded = load([tmp_path])

    assert loaded.runs[0].cases[0].record.files == 3
    words = f"{last.parent}: 1 of 4 process files are missing; summed up from the others"
    assert [text for text in loaded.warnings if "process files" in text] == [words]


@pytest.mark.parametrize("which", [0, -1], ids=["check", "timing"])
def test_a_copy_of_a_process_file_counts_once(tmp_path, which):
    files = write_run(tmp_path)
    copy = files[which].with_name("0009-" + files[which].name.partition("-")[2])
    copy.write_bytes(files[which].read_bytes())

    loaded = load([tmp_path])

    assert loaded.warnings == (f"{copy}: a copy of another process file; counted once",)
    assert loaded.runs[0].cases[0].record.files == 4


def test_a_case_of_which_a_killed_run_has_a_check_alone_has_its_numerics_and_counts_as_lost(tmp_path):
    for path in write_run(tmp_path, marked=False, stored=False)[1:]:
        path.unlink()

    (run,) = load([tmp_path]).runs

    outcomes = run.cases[0].variant("selu:jit").outcomes
    assert (outcomes["numerics"].status, outcomes["timing"].status) == (Status.OK, Status.LOST)
    assert run.record.lost() == (PLANNED,)


@settings(deadline=None, max_examples=settings.default.max_examples * 3 // 5)
@given(data=st.data())
def test_a_process_file_with_any_value_changed_is_used_or_named(data):
    """Whatever it says, reading the run is no crash."""
    record = json.loads(msgspec.json.encode(data.draw(st.sampled_from(list_processes()))))
    mutate(data, record)
    with TemporaryDirectory() as name:
        path = write_run(Path(name))[-1]
        path.write_bytes(gzip.compress(json.dumps(record).encode()))

        loaded = load([Path(name)])

        (case,) = loaded.runs[0].cases
        assert [item.read("speedup").metric.name for item in case.variants] == ["speedup"] * 2
        assert "</html>" in html.render(build(loaded))
