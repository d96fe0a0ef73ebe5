from pathlib import Path

import pytest

from launcher.options import UsageError
from launcher.sessions.bisect import PROCESSES, REFUSED, read_bisect_request

BOTH = ("--good", "jax==0.9.0", "--bad=jax==0.10.2")


def test_releases_case_and_criterion_are_read_and_the_rest_is_for_measuring():
    asked = read_bisect_request(
        [*BOTH, "--case", "selu", "--variant", "selu:jit", "--metric", "program", "--quick", "--out", "there"]
    )

    assert (asked.good, asked.bad, asked.case, asked.variant) == ("jax==0.9.0", "jax==0.10.2", "selu", "selu:jit")
    assert (asked.metric, asked.command, asked.processes) == ("program", "", PROCESSES)
    assert (asked.measuring, asked.out) == (("--quick", "--out", "there"), Path("there"))


def test_by_default_the_time_decides():
    asked = read_bisect_request([*BOTH, "--case", "selu", "--processes", "12"])

    assert (asked.metric, asked.processes, asked.out) == ("time", 12, Path("results"))


def test_a_command_may_decide():
    assert read_bisect_request([*BOTH, "--command", "python check.py"]).command == "python check.py"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), 'name a good and a bad release: nox -s bisect -- --good "jax==0.9.0"'),
        (("--good", "jax==0.9.0", "--case", "selu"), "name a good and a bad release"),
        (BOTH, "say what tells a bad release, a case or a command"),
        ((*BOTH, "--case", "a", "--command", "b"), "say what tells a bad release, a case or a command"),
        ((*BOTH, "--command", "b", "--metric", "time"), "--command decides by its exit code"),
        ((*BOTH, "--command", "b", "--variant", "a:jit"), "--command decides by its exit code"),
        ((*BOTH, "--case", "a", "--processes", "2"), "--processes '2' is no number from 3 on"),
        ((*BOTH, "--case", "a", "--processes", "²"), "--processes '²' is no number from 3 on"),
        ((*BOTH, "--case"), "--case needs a value"),
    ],
)
def test_what_cannot_be_done_is_said(arguments, said):
    with pytest.raises(UsageError) as caught:
        read_bisect_request(arguments)

    assert said in str(caught.value)


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_bisection_does_not_take_is_said(name):
    with pytest.raises(UsageError, match=f"{name}: "):
        read_bisect_request([*BOTH, "--case", "a", name, "b"])
