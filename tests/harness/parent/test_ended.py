"""What is recorded of a process that gave no result."""

import pytest

from harness.parent.ended import describe_end
from harness.parent.fork_client import Ended
from harness.plan.messages import Heartbeat, Problem
from harness.record import Outcome, Status

LIMIT_S = 90.0


def ended(**how) -> Ended:
    alive = {"answer": None, "signal": None, "timed_out": False, "code": None, "stderr": "", "peak_bytes": 0}
    return Ended(last=Heartbeat("f:jit", "compile"), **{**alive, **how})


@pytest.mark.parametrize(
    ("how", "status", "reason"),
    [
        ({"code": 7}, Status.FAILED, "exited with code 7 in stage 'compile'"),
        ({"code": 7, "stderr": "one\nlast words"}, Status.FAILED, "exited with code 7 in stage 'compile': last words"),
        ({"signal": 11}, Status.KILLED, "ended by SIGSEGV in stage 'compile'"),
        ({"signal": 11, "peak_bytes": 2**33}, Status.KILLED, "ended by SIGSEGV in stage 'compile'"),
        ({"signal": 62}, Status.KILLED, "ended by signal 62 in stage 'compile'"),
        (
            {"signal": 9, "peak_bytes": 3 * 2**29},
            Status.KILLED,
            (
                "ended by SIGKILL in stage 'compile', which the harness did not send; often that is the kernel, out of "
                "memory; it held 1.50 GiB"
            ),
        ),
        (
            {"signal": 9},
            Status.KILLED,
            (
                "ended by SIGKILL in stage 'compile', which the harness did not send; often that is the kernel, out of "
                "memory"
            ),
        ),
        (
            {"signal": 9, "timed_out": True},
            Status.TIMED_OUT,
            "no progress for 90 s in stage 'compile', so it was ended; a workload's time_limit_s sets this limit",
        ),
        ({"code": 0, "answer": Problem(message="no device")}, Status.FAILED, "no device"),
    ],
)
def test_the_reason_says_how_it_ended_and_where(how, status, reason):
    found = describe_end(ended(**how), LIMIT_S)

    assert (found.status, found.reason) == (status, reason)


@pytest.mark.parametrize("how", [{"code": 1}, {"signal": 11}, {"timed_out": True}, {"answer": Problem(message="no")}])
def test_what_it_wrote_is_kept_and_nothing_is_null(how):
    assert describe_end(ended(stderr="Traceback", **how), LIMIT_S).stderr == "Traceback"
    assert describe_end(ended(**how), LIMIT_S).stderr is None


def test_nothing_else_is_made_up():
    assert describe_end(ended(code=1), LIMIT_S) == Outcome(
        status=Status.FAILED, reason="exited with code 1 in stage 'compile'"
    )
