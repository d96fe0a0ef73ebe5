import errno
import json
import os
import re
import signal
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jaxmeter.cli.measuring import run_command
from jaxmeter.cli.request import RunRequest, read_budget, read_duration
from jaxmeter.cli.run import _how_to_finish, _say_what_is_kept, conclude, print_plan
from jaxmeter.cli.self_test import conclude_self_test
from jaxmeter.harness.metrics.aa_test import describe_self_test
from jaxmeter.harness.parent.fork_client import ServerError, ServerLostError
from jaxmeter.harness.parent.prepare_run import (
    RunError,
    UsageError,
    begin_folder,
    check_still_there,
    load_for_resume,
    lock_folder,
    make_folder,
)
from jaxmeter.harness.plan.cases import SelectionError, add_aa_control
from jaxmeter.harness.record import Outcome, RunFolder, Status, read_manifest, write_json
from jaxmeter.harness.record.self_test import find_self_test
from tests import samples
from tests.golden_texts import check_golden_scenes


def raising(error: BaseException):
    def command() -> int:
        raise error

    return command


@pytest.fixture(autouse=True)
def signals():
    """A command handles SIGTERM; afterwards it is handled as before."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def test_a_run_ends_with_its_cases_by_status_and_how_to_report_on_it_unless_nox_does(capsys, monkeypatch):
    code = conclude(samples.run(), Path("here"), as_json=False)

    assert code == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "1 case: 1 ok; here",
        "report on it with: jaxmeter report here",
    ]
    monkeypatch.setenv("JAXMETER_COMMAND", "nox -s cpu")
    conclude(samples.run(), Path("here"), as_json=False)
    assert "report on it" not in capsys.readouterr().out


def test_json_has_the_numbers_with_their_bounds(capsys):
    conclude(samples.troubled_run(), Path("here"), as_json=True)

    told = json.loads(capsys.readouterr().out)

    by_variant = {one["variant"]: one for one in told["results"]}
    assert by_variant["wrong:jit"]["status"] == "wrong"
    assert by_variant["wrong:jit"]["execution_s"] is None
    assert by_variant["a:eager"]["execution_s"]["contended"] is True
    ok = by_variant["ok:jit"]["execution_s"]
    assert ok["low"] < ok["value"] < ok["high"]
    assert ok["processes"] == 5


# Self-tests


def aa_test(*, failed: bool = False, measured: bool = True):
    """A run of a program and its A/A control, and of another case that failed or was not measured."""
    planned, other = (add_aa_control(samples.planned_case(name)) for name in ("good", "other"))
    first, aa_control = (variant.name for variant in planned.variants)
    timings = {first: samples.timing(1e-3), aa_control: samples.timing(1e-3, baseline_s=1e-3)}
    good = samples.record(planned, {name: {"timing": timing} for name, timing in timings.items()})
    ended = Outcome(status=Status.FAILED, reason="no luck") if failed else samples.numerics()
    rest = samples.record(other, {first: {"numerics": ended}, aa_control: {"numerics": ended}})
    return samples.run((planned, good), (other, rest if measured else None))


def test_a_self_test_of_whole_runs_is_kept_and_told(tmp_path, capsys):
    code = conclude_self_test("here", [aa_test(), aa_test()], tmp_path, as_json=False)

    found, said = find_self_test(tmp_path, "here"), capsys.readouterr().out
    assert found is not None
    assert (code, found.runs, found.speedups.compared) == (0, 2, 2)
    assert " ".join(said.split()).startswith(" ".join(" ".join(describe_self_test(found)).split()))
    assert f" {tmp_path}/.self-tests/here-" in said


def test_a_run_that_has_lost_cases_does_not_count_and_two_are_needed_of_which_some_may_have_failed(tmp_path, capsys):
    assert conclude_self_test("elsewhere", [aa_test(failed=True), aa_test()], tmp_path, as_json=False) == 3
    assert find_self_test(tmp_path, "elsewhere") is not None
    assert "Some cases failed" in capsys.readouterr().out
    lost = aa_test(measured=False)

    whole = conclude_self_test("here", [aa_test(), aa_test(), lost], tmp_path, as_json=True)
    found = find_self_test(tmp_path, "here")
    too_few = conclude_self_test("there", [aa_test(), lost], tmp_path, as_json=True)

    assert found is not None
    assert (whole, found.runs) == (3, 2)
    assert (too_few, find_self_test(tmp_path, "there")) == (3, None)
    assert "1 of 2 did" in capsys.readouterr().err


# Times

A_TIME = re.compile(r"\d+(\.\d+)?s?|\d+h(\d+m)?(\d+(\.\d+)?s)?|\d+m(\d+(\.\d+)?s)?")


@given(hours=st.integers(0, 99), minutes=st.integers(0, 99), seconds=st.floats(0, 999).map(lambda s: round(s, 3)))
def test_a_time_is_hours_minutes_and_seconds(hours, minutes, seconds):
    assert read_duration(f"{hours}h{minutes}m{seconds:f}s") == pytest.approx(3600 * hours + 60 * minutes + seconds)
    assert read_duration(f"{hours}h{minutes}m") == 3600 * hours + 60 * minutes
    assert read_duration(f"{hours}h") == 60 * read_duration(f"{hours}m")
    assert read_duration(f"{seconds:f}") == read_duration(f" {seconds:f}s ") == seconds


@given(text=st.text("0123456789hms. -+e", max_size=8).filter(lambda text: not A_TIME.fullmatch(text.strip())))
@example("soon")
@example("nan")
@example("1h30")  # half an hour, or half a minute?
def test_anything_else_is_no_time_and_the_error_shows_how_to_write_one(text):
    with pytest.raises(UsageError) as caught:
        read_duration(text)

    assert str(caught.value).startswith(f"--budget '{text}' is not a time; ")


@pytest.mark.parametrize("text", ["0.9s", "720h1s", "9" * 400])
def test_a_budget_that_no_run_can_have_is_refused_with_what_is_allowed(text):
    assert (read_budget("1s"), read_budget("720h")) == (1, 30 * 24 * 3600)
    with pytest.raises(UsageError, match=r"--budget '.*' is not between 1 s and 30 days"):
        read_budget(text)


# Data


def test_a_folder_of_data_that_cannot_be_read_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may read all

    with pytest.raises(UsageError, match=r"--data '.*' cannot be read by this user; allow that"):
        print_plan(RunRequest(level="quick", data=tmp_path, out=tmp_path), as_json=False)


# Exit codes


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (lambda: 3, 3, ""),
        (raising(KeyboardInterrupt()), 130, ""),
        (lambda: signal.raise_signal(signal.SIGTERM), 130, ""),
        (
            raising(ValueError("a bug")),
            3,
            "ValueError: a bug\nerror: this is a fault of jaxmeter; what was measured is ",
        ),
        (raising(UsageError("suite '\x1b[31m'\nsecond line")), 2, "error: suite '?[31m'\nsecond line\n"),
    ],
    ids=[
        "its own code",
        "interrupted",
        "terminated",
        "a fault, which is no regression",
        "a text that steers terminals",
    ],
)
def test_a_command_ends_with_its_own_code_or_that_of_an_error(command, code, said, capsys):
    assert run_command(command) == code

    printed = capsys.readouterr()
    assert (printed.out, said in printed.err, bool(printed.err)) == ("", True, bool(said))


ERRORS = {
    "usage": (UsageError("no backend 'npu'"), 2),
    "selection": (SelectionError("no case matches"), 2),
    "server": (ServerError("the fork server cannot be reached"), 2),
    "lost server": (ServerLostError("was ended"), 3),
    "not whole": (RunError("moved"), 3),
    "no permission": (OSError(errno.EACCES, "Permission denied", "it/a"), 2),
    "read-only": (OSError(errno.EROFS, "Read-only file system", "a"), 2),
    "full disk": (OSError(errno.ENOSPC, "No space left on device", "run.json"), 3),
    "full disk of a process": (OSError(errno.ENOSPC, "OSError: [Errno 28] no room for it", "results/it"), 3),
    "too many processes": (OSError(errno.EAGAIN, "Resource temporarily unavailable"), 3),
    "lost mount": (OSError(errno.EIO, "Input/output error", "a"), 3),
    "full quota": (OSError(errno.EDQUOT, "Disk quota exceeded", "run.json"), 3),
}


def during_a_run(folder, error):
    """A command whose run is stopped by an error."""

    def command() -> int:
        with _say_what_is_kept(folder, samples.manifest([samples.planned_case()]), _how_to_finish(folder.path)):
            raise error

    return command


def test_errors_of_a_command_and_of_a_run_that_its_machine_stops_have_a_code_and_read_as_their_golden_text(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    folder = make_folder(Path(), "it")
    said = {}
    for name, (error, code) in ERRORS.items():
        is_usage = isinstance(error, UsageError | SelectionError)
        assert (run_command(raising(error)), run_command(during_a_run(folder, error))) == (code, 2 if is_usage else 3)
        printed = capsys.readouterr()
        said[name] = printed.err
        assert printed.out == ""

    check_golden_scenes("command-errors", said)


def test_a_launcher_may_say_how_a_run_is_gone_on_with(monkeypatch):
    monkeypatch.setenv("JAXMETER_COMMAND", "nox -s cpu --")
    assert _how_to_finish(Path("results/it")) == "nox -s cpu -- --resume results/it"

    monkeypatch.setenv("JAXMETER_FINISH", "the same again")
    assert _how_to_finish(Path("results/it")) == "the same again"


# Runs and their folders


@pytest.mark.parametrize(
    ("outcomes", "is_complete"),
    [
        *(
            ({"a": {"numerics": samples.numerics()}, "b": {"timing": Outcome(status=status)}}, False)
            for status in (Status.WRONG, Status.FAILED, Status.KILLED, Status.TIMED_OUT, Status.LOST)
        ),
        ({"a": {"numerics": Outcome(status=Status.SKIPPED)}}, False),
        (
            {
                "a": {"numerics": samples.numerics(), "memory": Outcome(status=Status.UNSUPPORTED)},
                "b": {"numerics": Outcome(status=Status.SKIPPED)},
            },
            True,
        ),
    ],
    ids=[*("wrong", "failed", "killed", "timed out", "lost"), "nothing measured", "skipped or unsupported"],
)
def test_one_bad_outcome_makes_a_run_incomplete_and_so_does_nothing_measured_or_a_missing_case(outcomes, is_complete):
    case = samples.planned_case()
    pair = case, samples.record(case, outcomes)

    assert samples.run(pair).is_complete() is is_complete
    assert not samples.run(pair, (samples.planned_case("missing"), None)).is_complete()


@pytest.mark.parametrize("run_id", ["", ".", "..", "a/b", "/abs"])
def test_a_run_id_is_the_name_of_a_folder(tmp_path, run_id):
    with pytest.raises(UsageError, match="cannot be a folder's name"):
        make_folder(tmp_path, run_id)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["manifest.json", "run.json", "notes.txt"])
def test_a_run_id_that_is_taken_says_how_to_go_on(tmp_path, name):
    (make_folder(tmp_path, "mine").path / name).write_text("precious")

    with (
        pytest.raises(UsageError, match=r"the run id 'mine' is taken: .* or finish it with --resume"),
        begin_folder(tmp_path, "mine"),
    ):
        pass

    assert (tmp_path / "mine" / name).read_text() == "precious"


def test_a_folder_in_which_nothing_was_measured_is_taken_over_empty_or_named(tmp_path):
    left = make_folder(tmp_path, "mine")
    (left.path / ".manifest.json.x1").touch()

    with pytest.raises(UsageError, match=r"nothing was measured in .*mine; start it again with --run-id mine"):
        load_for_resume(left)
    with begin_folder(tmp_path, "mine") as folder:
        assert list(folder.path.iterdir()) == []
        write_json(folder.manifest, samples.manifest([]))

    assert folder.manifest.exists()


def test_a_folder_in_which_nothing_was_kept_is_gone_again_and_of_two_that_begin_one_run_the_second_is_refused(tmp_path):
    with pytest.raises(SelectionError), begin_folder(tmp_path, "mine"):
        raise SelectionError("no case")
    assert list(tmp_path.iterdir()) == []

    with begin_folder(tmp_path, "mine") as folder:
        with pytest.raises(RunError, match="another process is writing"), begin_folder(tmp_path, "mine"):
            pass
        assert folder.path.is_dir()
        write_json(folder.manifest, samples.manifest([]))

    assert folder.manifest.exists()


def test_a_run_without_its_manifest_is_known_by_its_commit_mark(tmp_path):
    run = samples.run()
    folder = RunFolder(samples.write_run(tmp_path / "mine", run))
    folder.manifest.unlink()

    assert load_for_resume(folder) == run.manifest


def test_a_manifest_that_was_removed_meanwhile_is_written_again(tmp_path):
    manifest = samples.manifest([])
    folder = make_folder(tmp_path, "mine")

    check_still_there(folder, manifest)

    assert read_manifest(folder) == manifest
    folder.manifest.write_text("precious")  # one that is there is left alone
    check_still_there(folder, manifest)
    assert folder.manifest.read_text() == "precious"
    with pytest.raises(RunError, match="was moved or removed while the run went on"):
        check_still_there(RunFolder(tmp_path / "gone"), manifest)
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize("because", [None, FileNotFoundError("it/scratch/1.answer"), RunError("it cannot be written")])
def test_a_folder_that_was_moved_while_it_was_held_is_told_though_another_has_its_name(tmp_path, because):
    folder = make_folder(tmp_path, "mine")

    def move() -> None:
        with lock_folder(folder):
            folder.path.rename(tmp_path / "moved")
            folder.path.mkdir()
            if because is not None:
                raise because

    with pytest.raises(RunError, match="mine was moved or removed while the run went on"):
        move()
