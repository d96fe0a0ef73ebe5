import errno
import os
import re
import signal
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.commands import RunRequest, conclude, dry_run, find_backend, read_duration, run_command
from harness.machine.places import BACKENDS
from harness.parent.fork_client import ServerError
from harness.parent.prepare_run import UsageError, is_complete, make_folder
from harness.plan.selection import SelectionError
from harness.record import Outcome, Status
from tests import samples


@pytest.fixture(autouse=True)
def signals():
    """A command handles SIGTERM; afterwards it is handled as before."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize(("count", "said"), [(1, "1 case: 1 ok; here\n"), (2, "2 cases: 2 ok; here\n")])
def test_a_run_ends_with_its_cases_by_status_one_of_them_in_the_singular(count, said, capsys):
    cases = [samples.planned_case("selu", params={"n": n}) for n in range(count)]

    code = conclude(samples.run(*((case, samples.fast_case(case)) for case in cases)), Path("here"), as_json=False)

    assert (code, capsys.readouterr().out) == (0, said)


# Times

A_TIME = re.compile(r"\d+(\.\d+)?s?|\d+h(\d+m)?(\d+(\.\d+)?s?)?|\d+m(\d+(\.\d+)?s?)?")


@given(
    hours=st.integers(0, 99), minutes=st.integers(0, 99), seconds=st.integers(0, 999), unit=st.sampled_from(["", "s"])
)
def test_a_time_is_hours_minutes_and_seconds(hours, minutes, seconds, unit):
    assert read_duration(f"{hours}h{minutes}m{seconds}{unit}") == 3600 * hours + 60 * minutes + seconds


@given(seconds=st.floats(0, 1e5).map(lambda value: round(value, 3)))
def test_seconds_may_have_a_fraction(seconds):
    assert read_duration(f"{seconds:f}") == read_duration(f" {seconds:f}s ") == seconds


@pytest.mark.parametrize(("text", "expected"), [("90", 90), ("90s", 90), ("10m", 600), ("1h30m", 5400), ("2h", 7200)])
def test_parts_of_a_time_may_be_left_out(text, expected):
    assert read_duration(text) == expected


@given(text=st.text("0123456789hms. -+e", max_size=8).filter(lambda text: not A_TIME.fullmatch(text.strip())))
@example("")
@example("soon")
@example("-5")
@example("30m1h")
@example("1.5h")
@example("nan")
def test_anything_else_is_no_time_and_the_error_shows_how_to_write_one(text):
    with pytest.raises(UsageError) as caught:
        read_duration(text)

    assert str(caught.value) == f"--budget '{text}' is not a time; write 90, 90s, 10m or 1h30m"


# Data


def test_a_folder_of_data_that_cannot_be_read_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may read all
    request = RunRequest(
        backend="cpu",
        level="quick",
        select=(),
        suites=(),
        probes=(),
        launches=None,
        budget=None,
        data=tmp_path,
        out=tmp_path,
        run_id=None,
    )

    with pytest.raises(UsageError, match=r"--data '.*' cannot be read by this user; allow that"):
        dry_run(request, as_json=False)


# Exit codes


def raising(error: BaseException):
    def command() -> int:
        raise error

    return command


@pytest.mark.parametrize("code", [0, 3])
def test_a_command_gives_its_own_code(code):
    assert run_command(lambda: code) == code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("no backend 'npu'"), 2),
        (SelectionError("no case matches"), 2),
        (ServerError("cannot start"), 2),
        (OSError(errno.ENOSPC, "No space left on device", "run.json"), 3),
        (OSError(errno.EDQUOT, "Disk quota exceeded", "run.json"), 3),
        (KeyboardInterrupt(), 130),
    ],
    ids=["usage", "selection", "server", "full disk", "full quota", "interrupted"],
)
def test_errors_that_a_person_can_act_on_are_a_line_and_a_code(error, code, capsys):
    assert run_command(raising(error)) == code

    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == (0 if code == 130 else 1)


def test_a_full_disk_names_the_file_and_the_way_on(capsys):
    run_command(raising(OSError(errno.ENOSPC, "No space left on device", "run.json")))

    assert (
        capsys.readouterr().err == "error: the disk is full (run.json); free some room, then go on with --resume RUN\n"
    )


def test_an_error_that_nobody_foresaw_is_shown_and_is_not_taken_for_a_regression(capsys):
    assert run_command(raising(ValueError("a bug"))) == 3

    assert "ValueError: a bug" in capsys.readouterr().err


def test_a_file_that_cannot_be_used_is_named(capsys):
    assert run_command(raising(OSError(errno.EACCES, "Permission denied", "run.json"))) == 2

    assert capsys.readouterr().err == "error: run.json cannot be read or written: Permission denied\n"


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

    assert is_complete(samples.run(fine))
    assert not is_complete(samples.run(fine, (missing, None)))


@pytest.mark.parametrize("status", [Status.WRONG, Status.FAILED, Status.KILLED, Status.TIMED_OUT, Status.LOST])
def test_one_bad_outcome_makes_a_run_incomplete(status):
    case = samples.planned_case()
    bad = samples.record(case, {"a": {"numerics": samples.numerics()}, "b": {"timing": Outcome(status=status)}})

    assert not is_complete(samples.run((case, bad)))


def test_a_run_that_measured_nothing_is_not_complete():
    case = samples.planned_case()
    skipped = samples.record(case, {"a": {"numerics": Outcome(status=Status.SKIPPED)}})

    assert not is_complete(samples.run((case, skipped)))


def test_what_is_skipped_or_unsupported_leaves_a_run_complete():
    case = samples.planned_case()
    outcomes = {"numerics": samples.numerics(), "memory": Outcome(status=Status.UNSUPPORTED)}
    record = samples.record(case, {"a": outcomes, "b": {"numerics": Outcome(status=Status.SKIPPED)}})

    assert is_complete(samples.run((case, record)))


@pytest.mark.parametrize("run_id", ["", ".", "..", "a/b", "../up", "/abs"])
def test_a_run_id_is_the_name_of_a_folder(tmp_path, run_id):
    with pytest.raises(UsageError, match="cannot be a folder's name"):
        make_folder(tmp_path, run_id)

    assert list(tmp_path.iterdir()) == []


def test_a_run_id_that_is_taken_says_how_to_go_on(tmp_path):
    make_folder(tmp_path, "mine")

    with pytest.raises(UsageError, match=r"the run id 'mine' is taken: .* or finish it with --resume"):
        make_folder(tmp_path, "mine")
