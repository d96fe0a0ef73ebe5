"""What is recorded of a process that gave no result."""

import dataclasses
import errno
import shutil
from types import SimpleNamespace

import pytest

from jaxmeter.harness.machine.own_fault import EXIT_CODE
from jaxmeter.harness.parent.fork_client import LOW_BYTES, Ended, raise_if_disk_full
from jaxmeter.harness.parent.process_runner import describe_end
from jaxmeter.harness.plan.messages import Heartbeat, SuiteProblem
from jaxmeter.harness.record import Status

LIMIT_S = 90.0
INPUTS = "in stage 'inputs', so it was ended"
SETS = "a workload's time_limit_s"
KILLED = "ended by SIGKILL in stage 'compile', which the harness did not send; often that is the kernel, out of memory"


def ended(**how) -> Ended:
    alive = {"answer": None, "signal": None, "timed_out": False, "code": None, "stderr": "", "peak_bytes": 0}
    return Ended(last=Heartbeat("f:jit", "compile"), **{**alive, **how})


@pytest.mark.parametrize(
    ("limit_s", "reason"),
    [
        (10, f"120 s {INPUTS}; before the first variant the limit is 120 s, or {SETS} if it is longer"),
        (300, f"300 s {INPUTS}; {SETS} sets this limit"),
    ],
)
def test_the_reason_names_the_limit_that_ended_it(limit_s, reason):
    silent = dataclasses.replace(ended(signal=9, timed_out=True), last=Heartbeat(None, "inputs"))

    assert describe_end(silent, limit_s).reason == f"no progress for {reason}"


@pytest.mark.parametrize(
    ("how", "status", "reason"),
    [
        ({"code": 7}, Status.FAILED, "exited with code 7 in stage 'compile'"),
        ({"code": 7, "stderr": "one\nlast words"}, Status.FAILED, "exited with code 7 in stage 'compile': last words"),
        ({"signal": 11}, Status.KILLED, "ended by SIGSEGV in stage 'compile'"),
        ({"signal": 11, "peak_bytes": 2**33}, Status.KILLED, "ended by SIGSEGV in stage 'compile'"),
        ({"signal": 62}, Status.KILLED, "ended by signal 62 in stage 'compile'"),
        ({"signal": 9, "peak_bytes": 3 * 2**29}, Status.KILLED, f"{KILLED}; it held 1.50 GiB"),
        ({"signal": 9}, Status.KILLED, KILLED),
        (
            {"signal": 9, "timed_out": True},
            Status.TIMED_OUT,
            "no progress for 90 s in stage 'compile', so it was ended; a workload's time_limit_s sets this limit",
        ),
        ({"code": 0, "answer": SuiteProblem(message="no device")}, Status.FAILED, "no device"),
    ],
)
def test_the_reason_says_how_it_ended_and_where(how, status, reason):
    found = describe_end(ended(**how), LIMIT_S)

    assert (found.status, found.reason) == (status, reason)


@pytest.mark.parametrize(
    "how", [{"code": 1}, {"signal": 11}, {"timed_out": True}, {"answer": SuiteProblem(message="no")}]
)
def test_what_it_wrote_is_kept_and_nothing_is_null(how):
    assert describe_end(ended(stderr="Traceback", **how), LIMIT_S).stderr == "Traceback"
    assert describe_end(ended(**how), LIMIT_S).stderr is None


# A full disk


@pytest.fixture
def free(monkeypatch):
    """Makes every file system have so many bytes free."""

    def have(free_bytes: int) -> None:
        monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=free_bytes))

    return have


@pytest.mark.parametrize(("stderr", "words"), [("one\nno room", "no room"), ("", "No space left on device")])
def test_a_process_that_could_not_write_stops_the_run_with_its_last_words(free, tmp_path, stderr, words):
    free(2**40)

    with pytest.raises(OSError, match=words) as caught:
        raise_if_disk_full(ended(code=EXIT_CODE, stderr=stderr), tmp_path)

    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(tmp_path))


@pytest.mark.parametrize("how", [{"signal": 7, "stderr": "Bus error"}, {"signal": 11}, {"code": 1}])
def test_an_end_without_words_is_that_of_a_full_disk_where_no_room_is_left(free, tmp_path, how):
    free(LOW_BYTES)
    raise_if_disk_full(ended(**how), tmp_path)

    free(LOW_BYTES - 1)
    with pytest.raises(OSError, match="and 8388607 bytes are free"):
        raise_if_disk_full(ended(**how), tmp_path)


@pytest.mark.parametrize(
    "how",
    [
        {"code": 0, "answer": SuiteProblem(message="no device")},
        {"code": 1, "stderr": "ValueError: no luck"},
        {"signal": 9, "timed_out": True},
    ],
)
def test_an_end_that_explains_itself_is_not_put_down_to_the_disk(free, tmp_path, how):
    free(0)

    raise_if_disk_full(ended(**how), tmp_path)
