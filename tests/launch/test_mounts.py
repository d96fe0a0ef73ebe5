import json
import socket
from pathlib import Path

import pytest

from jaxmeter.launch.containers import Mount, make_writable_folders, mounts_for, report_mounts
from jaxmeter.launch.options import UsageError
from jaxmeter.launch.runs import plan_run

ID = "2026-08-22T10-15-30Z-cpu-1f0c9a7"


@pytest.fixture
def here(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def mounts_of(here, *arguments):
    return mounts_for(arguments, plan_run(arguments, ID), here)


def readable(here, *arguments):
    return [mount.source for mount in mounts_of(here, *arguments) if not mount.writable]


def writable(here, *arguments):
    return [mount.source for mount in mounts_of(here, *arguments) if mount.writable]


def touch(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_results_and_reports_of_the_working_folder_can_be_written_and_nothing_else_is_seen(here):
    assert mounts_of(here) == (
        Mount(here / "results", here / "results", writable=True),
        Mount(here / "reports", here / "reports", writable=True),
    )


@pytest.mark.parametrize(
    ("out", "folders"),
    [
        ("results/../elsewhere", ["work/elsewhere", "work/reports"]),
        ("../data", ["data", "work/reports"]),
        ("~/data", ["home/data", "work/reports"]),
        ("reports", ["work/reports"]),
    ],
)
def test_results_are_written_where_out_says_and_a_folder_is_mounted_once(here, tmp_path, monkeypatch, out, folders):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    assert writable(here, "--out", out) == [tmp_path / folder for folder in folders]


@pytest.mark.parametrize(
    ("files", "arguments", "seen"),
    [
        ("mine/suite.py", ("--suites", "mine/suite.py"), ["mine"]),
        ("mine/suite.py", ("--suites", "mine"), ["mine"]),
        ("mine/deep/suite.py", ("--suites", "mine"), ["mine"]),
        ("mine/deep/suite.py", ("--suites", "mine.deep.suite"), ["mine"]),
        ("mine.py", ("--suites", "mine"), ["mine.py"]),
        ("mine.py", ("--suites", "jaxmeter.suites.matmul"), []),
        ("mine/a.py mine/b.py", ("--suites", "mine/a.py", "--suites=mine/b.py", "--data", "mine"), ["mine"]),
        ("mine/a.py yours/b.py", ("--suites", "mine/a.py", "--suites", "yours"), ["mine", "yours"]),
        ("numbers/x.npy", ("--data", "numbers"), ["numbers"]),
    ],
    ids=[
        *("a file is seen with its neighbours", "a folder", "a package as a whole", "a module of a package as a whole"),
        *("a module alone", "the image's own", "suites and data of one folder once", "several folders", "data alone"),
    ],
)
def test_what_suites_and_data_need_is_seen(here, files, arguments, seen):
    for name in files.split():
        touch(here / name)

    assert readable(here, *arguments) == [here / name for name in seen]


def test_a_folder_that_holds_suites_and_results_is_mounted_once_and_can_be_written(here):
    touch(here / "mine/a.py")

    mounts = mounts_of(here, "--suites", "mine/a.py", "--out", "mine")

    assert [mount for mount in mounts if mount.target == here / "mine"] == [
        Mount(here / "mine", here / "mine", writable=True)
    ]


@pytest.mark.parametrize("name", ["mine/missing.py", "./missing", "../missing", "/nowhere/missing", ".hidden"])
def test_suites_that_are_missing_are_an_error_and_never_all_of_the_working_folder(here, name):
    with pytest.raises(UsageError, match=f"--suites {name}: it is not there; --suites takes a module name"):
        mounts_of(here, "--suites", name)


@pytest.mark.parametrize(
    ("option", "path"),
    [("--suites", "/"), ("--suites", "~"), ("--suites", "~/suite.py"), ("--suites", "~/.."), ("--out", "~")],
)
def test_the_root_or_a_home_folder_would_show_everything(here, tmp_path, monkeypatch, option, path):
    monkeypatch.setenv("HOME", str(tmp_path / "homes/me"))
    touch(tmp_path / "homes/me/suite.py")
    with pytest.raises(UsageError, match=rf"{option}.*: the container would see all of .*; use a folder of its own"):
        mounts_of(here, option, path)


@pytest.mark.parametrize("option", ["--out", "--data"])
@pytest.mark.parametrize("folder", ["/", "/usr/share", "/tmp"])
def test_what_a_container_needs_for_itself_is_neither_hidden_nor_written(here, option, folder):
    with pytest.raises(UsageError, match=rf"^{option}: "):
        mounts_of(here, option, folder)


def test_data_that_is_missing_is_an_error_that_names_it(here):
    with pytest.raises(UsageError, match=f"--data {here}/numbers: no such folder"):
        mounts_of(here, "--data", "numbers")


def resumed(here, settings):
    folder = here / "results" / ID
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps(settings))
    return folder


@pytest.mark.parametrize("option", ["--resume", "--against"])
def test_folders_that_a_record_names_are_not_seen(here, option):
    touch(here / "mine/suite.py")
    touch(here / "numbers/x.npy")
    resumed(here, {"settings": {"suites": ["mine/suite.py"], "data": "numbers"}})

    assert {here / "mine", here / "numbers"}.isdisjoint(readable(here, option, ID))


def test_a_run_that_goes_on_sees_the_suites_and_data_of_the_command_line_and_writes_beside_itself(here, tmp_path):
    touch(here / "mine/suite.py")
    touch(here / "numbers/x.npy")
    folder = resumed(tmp_path / "elsewhere", {})
    words = ("--resume", str(folder), "--suites", "mine/suite.py", "--data", "numbers")

    assert readable(here, *words) == [here / "mine", here / "numbers"]
    assert writable(here, *words) == [folder.parent, here / "reports"]


def test_a_report_reads_its_runs_and_writes_to_reports(here, tmp_path):
    runs = [Path("results/a"), tmp_path / "b", Path("results/a")]

    assert report_mounts(runs, here) == (
        Mount(here / "results/a", here / "results/a"),
        Mount(tmp_path / "b", tmp_path / "b"),
        Mount(here / "reports", here / "reports", writable=True),
    )


def test_folders_for_results_are_made_beforehand_and_left_empty_and_others_are_not_made(tmp_path):
    folder = tmp_path / "deep/results"

    for _ in range(2):
        make_writable_folders([Mount(folder, folder, writable=True), Mount(tmp_path / "suites", tmp_path / "suites")])

    assert list(tmp_path.rglob("*")) == [tmp_path / "deep", folder]


def test_a_file_in_the_place_of_results_is_an_error_that_says_what_to_do(tmp_path):
    file = touch(tmp_path / "results")

    with pytest.raises(UsageError, match=r"results: a file is in the way; write elsewhere with --out DIR"):
        make_writable_folders([Mount(file, file, writable=True)])


def refuse(**options):
    raise PermissionError(13, "Permission denied")


def have_no_name(path):
    raise KeyError("getpwuid(): uid not found: 1234")


@pytest.mark.parametrize(("owner", "said"), [(lambda path: "root", ": it belongs to root"), (have_no_name, "")])
def test_a_results_folder_of_somebody_else_is_an_error_that_names_the_owner(tmp_path, monkeypatch, owner, said):
    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    monkeypatch.setattr(Path, "owner", owner)

    with pytest.raises(UsageError) as raised:
        make_writable_folders([Mount(tmp_path, tmp_path, writable=True)])

    assert f"{tmp_path} cannot be written (Permission denied){said}; write elsewhere with --out DIR" in str(
        raised.value
    )


def test_the_folder_where_another_container_is_asked_can_be_written(here, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a socket's path has 107 bytes at most
    Path("s").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s/gateway")

        assert writable(here, "--lock-step", str(tmp_path / "s" / "gateway"))[-1] == tmp_path / "s"


def test_the_checkout_of_an_earlier_run_is_read(here, tmp_path):
    base = tmp_path / "base"
    base.mkdir()
    touch(here / "bench" / "step.py")
    given = ("--suites", "bench/step.py", "--baseline-checkout", str(base))

    assert base in readable(here, *given)
    assert base not in writable(here, *given)


@pytest.mark.parametrize(
    ("suite", "checkout", "words"),
    [
        ("step.py", "gone", "--baseline-checkout .*gone: no such folder"),
        ("../step.py", "base", "lies outside .*; with --baseline-checkout, a container needs suites below the current"),
    ],
)
def test_a_checkout_that_a_container_cannot_use_is_refused(here, suite, checkout, words):
    touch(here / suite)
    (here / "base").mkdir()

    with pytest.raises(UsageError, match=words):
        readable(here, "--suites", suite, "--baseline-checkout", str(here / checkout))


def test_a_python_to_take_turns_with_is_in_no_container(here, tmp_path):
    python = touch(tmp_path / "bin" / "python")

    assert python.parent not in writable(here, "--lock-step", str(python)) + readable(here, "--lock-step", str(python))
