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
from jaxmeter.cli.request import RunRequest, find_backend, read_duration
from jaxmeter.cli.run import _how_to_finish, _say_what_is_kept, conclude, print_plan
from jaxmeter.cli.self_test import conclude_self_test
from jaxmeter.harness.machine.platforms import BACKENDS
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


@pytest.fixture(autouse=True)
def signals():
    """A command handles SIGTERM; afterwards it is handled as before."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def request(folder: Path, *, budget: str | None = None, data: Path | None = None) -> RunRequest:
    return RunRequest(level="quick", budget=budget, data=data, out=folder)


@pytest.mark.parametrize(("count", "said"), [(1, "1 case: 1 ok; here"), (2, "2 cases: 2 ok; here")])
def test_a_run_ends_with_its_cases_by_status_one_of_them_in_the_singular(count, said, capsys):
    cases = [samples.planned_case("selu", params={"n": n}) for n in range(count)]

    code = conclude(samples.run(*((case, samples.fast_case(case)) for case in cases)), Path("here"), as_json=False)

    assert (code, capsys.readouterr().out.splitlines()[-2:]) == (
        0,
        [said, "report on it with: jaxmeter report here"],
    )


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


def test_nox_reports_by_itself(capsys, monkeypatch):
    monkeypatch.setenv("JAXMETER_COMMAND", "nox -s cpu")

    conclude(samples.run(), Path("here"), as_json=False)

    assert "report on it" not in capsys.readouterr().out


# Self-tests


def aa_test(*, failed: bool = False, measured: bool = True):
    """A run of a program and its A/A control, and of another case that failed or was not measured."""
    planned, other = (add_aa_control(samples.planned_case(name)) for name in ("good", "other"))
    assert planned is not None
    assert other is not None
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


def test_where_a_case_failed_the_others_are_kept_and_the_code_is_3(tmp_path, capsys):
    code = conclude_self_test("here", [aa_test(failed=True), aa_test()], tmp_path, as_json=False)

    assert code == 3
    assert find_self_test(tmp_path, "here") is not None
    assert "Some cases failed" in capsys.readouterr().out


def test_a_run_that_has_lost_cases_does_not_count_and_two_are_needed(tmp_path, capsys):
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


@given(hours=st.integers(0, 99), minutes=st.integers(0, 99), seconds=st.integers(0, 999))
def test_a_time_is_hours_minutes_and_seconds(hours, minutes, seconds):
    assert read_duration(f"{hours}h{minutes}m{seconds}s") == 3600 * hours + 60 * minutes + seconds
    assert read_duration(f"{hours}h{minutes}m") == 3600 * hours + 60 * minutes
    assert read_duration(f"{hours}h") == 3600 * hours
    assert read_duration(f"{minutes}m") == 60 * minutes


@given(seconds=st.floats(0, 1e5).map(lambda value: round(value, 3)))
def test_seconds_may_have_a_fraction(seconds):
    assert read_duration(f"{seconds:f}") == read_duration(f" {seconds:f}s ") == seconds


@given(text=st.text("0123456789hms. -+e", max_size=8).filter(lambda text: not A_TIME.fullmatch(text.strip())))
@example("")
@example("soon")
@example("-5")
@example("30m1h")
@example("1.5h")
@example("nan")
@example("1h30")  # half an hour, or half a minute?
@example("10m5")
@example("1h5m7")
def test_anything_else_is_no_time_and_the_error_shows_how_to_write_one(text):
    with pytest.raises(UsageError) as caught:
        read_duration(text)

    assert str(caught.value).startswith(f"--budget '{text}' is not a time; ")


@pytest.mark.parametrize("text", ["0", "0s", "0h0m0.0s", "0.5s", "31m999h", "99999h", "9" * 400])
def test_a_budget_that_no_run_can_have_is_refused_with_what_is_allowed(tmp_path, text):
    with pytest.raises(UsageError, match=r"--budget '.*' is not (between 1 s and 30 days|a time)"):
        print_plan(request(tmp_path, budget=text), as_json=False)


# Data


def test_a_folder_of_data_that_cannot_be_read_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may read all

    with pytest.raises(UsageError, match=r"--data '.*' cannot be read by this user; allow that"):
        print_plan(request(tmp_path, data=tmp_path), as_json=False)


# Exit codes


def raising(error: BaseException):
    def command() -> int:
        raise error

    return command


@pytest.mark.parametrize("code", [0, 3])
def test_a_command_gives_its_own_code(code):
    assert run_command(lambda: code) == code


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


@pytest.mark.parametrize("name", ERRORS)
def test_errors_that_a_person_can_act_on_are_a_line_and_a_code(name, capsys):
    error, code = ERRORS[name]

    assert run_command(raising(error)) == code

    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)


def test_an_interruption_has_its_own_code_and_no_words(capsys):
    assert run_command(raising(KeyboardInterrupt())) == 130
    assert capsys.readouterr() == ("", "")


def during_a_run(folder, error):
    """A command whose run is stopped by an error."""

    def command() -> int:
        with _say_what_is_kept(folder, samples.manifest([samples.planned_case()]), _how_to_finish(folder.path)):
            raise error

    return command


@pytest.mark.parametrize("name", ["server", "no permission", "read-only", "full disk"])
def test_a_run_that_its_machine_stops_says_what_it_kept_and_how_it_goes_on(tmp_path, name, capsys):
    folder = make_folder(tmp_path, "it")

    assert run_command(during_a_run(folder, ERRORS[name][0])) == 3
    assert capsys.readouterr().err.endswith(f"continue with: jaxmeter run --resume {folder.path}\n")


def test_errors_of_a_command_read_as_their_golden_text(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    folder = make_folder(Path(), "it")
    said = {}
    for name, (error, _) in ERRORS.items():
        run_command(raising(error))
        run_command(during_a_run(folder, error))
        said[name] = capsys.readouterr().err

    check_golden_scenes("command-errors", said)


def test_a_launcher_may_say_how_a_run_is_gone_on_with(monkeypatch):
    monkeypatch.setenv("JAXMETER_COMMAND", "nox -s cpu --")
    assert _how_to_finish(Path("results/it")) == "nox -s cpu -- --resume results/it"

    monkeypatch.setenv("JAXMETER_FINISH", "the same again")
    assert _how_to_finish(Path("results/it")) == "the same again"


def test_an_error_that_nobody_foresaw_is_shown_and_is_not_taken_for_a_regression(capsys):
    assert run_command(raising(ValueError("a bug"))) == 3

    assert "ValueError: a bug" in capsys.readouterr().err


def test_an_error_text_cannot_steer_the_terminal(capsys):
    run_command(raising(UsageError("suite '\x1b[31m'\nsecond line")))

    assert capsys.readouterr().err == "error: suite '?[31m'\nsecond line\n"


def test_a_termination_is_an_interruption():
    def command() -> int:
        signal.raise_signal(signal.SIGTERM)
        return 0

    assert run_command(command) == 130


def test_a_backend_that_there_is_not_is_named_with_those_that_are():
    assert find_backend("cpu") is BACKENDS["cpu"]
    with pytest.raises(UsageError, match="no backend 'npu'; backends are cpu, gpu, tpu"):
        find_backend("npu")


# Runs and their folders


def test_a_run_is_complete_when_every_case_is_measured_and_nothing_failed():
    good, missing = samples.planned_case("good"), samples.planned_case("missing")
    fine = (good, samples.fast_case(good))

    assert samples.run(fine).is_complete()
    assert not samples.run(fine, (missing, None)).is_complete()


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
def test_one_bad_outcome_makes_a_run_incomplete_and_so_does_nothing_measured(outcomes, is_complete):
    case = samples.planned_case()

    assert samples.run((case, samples.record(case, outcomes))).is_complete() is is_complete


@pytest.mark.parametrize("run_id", ["", ".", "..", "a/b", "../up", "/abs"])
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


def test_a_folder_that_was_left_before_anything_was_measured_is_taken_over_empty(tmp_path):
    left = make_folder(tmp_path, "mine")
    (left.path / ".manifest.json.x1").touch()

    with begin_folder(tmp_path, "mine") as folder:
        assert list(folder.path.iterdir()) == []
        write_json(folder.manifest, samples.manifest([]))

    assert folder.manifest.exists()


def test_a_folder_in_which_nothing_was_kept_is_gone_again(tmp_path):
    with pytest.raises(SelectionError), begin_folder(tmp_path, "mine"):
        raise SelectionError("no case")

    assert list(tmp_path.iterdir()) == []


def test_of_two_that_begin_one_run_the_second_is_refused_and_costs_the_first_nothing(tmp_path):
    with begin_folder(tmp_path, "mine") as folder:
        with pytest.raises(RunError, match="another process is writing"), begin_folder(tmp_path, "mine"):
            pass
        assert folder.path.is_dir()
        write_json(folder.manifest, samples.manifest([]))

    assert folder.manifest.exists()


def test_a_run_that_was_killed_before_its_manifest_is_to_be_started_again(tmp_path):
    (make_folder(tmp_path, "mine").path / ".manifest.json.12345678").touch()

    with pytest.raises(UsageError, match=r"nothing was measured in .*mine; start it again with --run-id mine"):
        load_for_resume(RunFolder(tmp_path / "mine"))


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


def test_a_folder_that_is_gone_is_told_and_not_made_anew(tmp_path):
    with pytest.raises(RunError, match="was moved or removed while the run went on"):
        check_still_there(RunFolder(tmp_path / "gone"), samples.manifest([]))

    assert list(tmp_path.iterdir()) == []


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
