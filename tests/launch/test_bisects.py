import os
import sys
from pathlib import Path

import pytest

from jaxmeter.launch.bisect import PROCESSES, REFUSED, read_bisect_request
from jaxmeter.launch.options import UsageError

BOTH = ("--good", "jax==0.9.0", "--bad=jax==0.10.2")


def read(words):
    return read_bisect_request(words, "time")


def test_releases_case_and_criterion_are_read_and_the_rest_is_for_measuring():
    asked = read([*BOTH, "--case", "selu", "--variant", "selu:jit", "--metric", "program", "--quick", "--out", "there"])

    assert (asked.good, asked.bad, asked.case, asked.variant) == ("jax==0.9.0", "jax==0.10.2", "selu", "selu:jit")
    assert (asked.metric, asked.command, asked.is_walk) == ("program", "", False)
    assert (asked.measuring, asked.out) == (("--quick", "--out", "there"), Path("there"))


def test_by_default_times_decide_and_all_releases_are_walked():
    asked = read([*BOTH, "--case", "selu"])

    assert (asked.is_walk, asked.processes, asked.resumed, asked.out) == (True, PROCESSES, "", Path("results"))
    assert read([*BOTH, "--case", "selu", "--metric", "time", "--processes", "12"]).processes == 12
    assert not read([*BOTH, "--command", "python check.py"]).is_walk


def test_all_environments_may_be_made_with_another_python():
    assert read([*BOTH, "--case", "selu"]).python == sys.executable
    python = os.path.realpath(sys.executable)
    assert read([*BOTH, "--command", "b", "--python", python]).python == python
    with pytest.raises(UsageError, match="no-python: no Python that can be started"):
        read([*BOTH, "--case", "selu", "--python", "no-python"])


def test_a_walk_is_resumed_by_its_name(tmp_path):
    (tmp_path / "it-0.9.0").mkdir()
    options = [*BOTH, "--case", "selu", "--out", str(tmp_path), "--resume"]

    assert read([*options, "it"]).resumed == "it"
    for name in ("i", "../it", "it-0.9.0"):
        with pytest.raises(UsageError, match="no run in"):
            read([*options, name])


def test_variables_to_try_are_read():
    flags = ["--try-env", "XLA_FLAGS=--xla_a=1 --xla_b=2", "--try-env", "OMP_NUM_THREADS=1"]

    asked = read([*BOTH, "--case", "selu", *flags])

    assert asked.variables == {"XLA_FLAGS": "--xla_a=1 --xla_b=2", "OMP_NUM_THREADS": "1"}


def test_a_command_may_decide():
    assert read([*BOTH, "--command", "python check.py"]).command == "python check.py"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), 'name a good and a bad release: --good "jax==0.9.0"'),
        (("--good", "jax==0.9.0", "--case", "selu"), "name a good and a bad release"),
        (BOTH, "give what identifies a bad release, a case or a command"),
        ((*BOTH, "--case", "a", "--command", "b"), "give what identifies a bad release, a case or a command"),
        ((*BOTH, "--command", "b", "--metric", "time"), "--command decides by its exit code"),
        ((*BOTH, "--command", "b", "--variant", "a:jit"), "--command decides by its exit code"),
        ((*BOTH, "--case", "a", "--processes", "2"), "--processes '2' must be an integer ≥ 3"),
        ((*BOTH, "--case", "a", "--processes", "²"), "--processes '²' must be an integer ≥ 3"),
        ((*BOTH, "--case"), "--case needs a value"),
        ((*BOTH, "--command", "b", "--try-env", "XLA_FLAGS="), "--try-env is about times"),
        ((*BOTH, "--case", "a", "--metric", "program", "--processes", "6"), "--processes is about times"),
        ((*BOTH, "--case", "a", "--metric", "program", "--resume", "it"), "--resume is about times"),
        ((*BOTH, "--case", "a", "--resume", "it"), "--resume it: no run in results has a name that begins with it"),
        ((*BOTH, "--case", "a", "--try-env", "XLA_FLAGS"), "--try-env 'XLA_FLAGS' is not NAME=VALUE"),
    ],
)
def test_what_cannot_be_done_is_said(arguments, said):
    with pytest.raises(UsageError) as caught:
        read(arguments)

    assert said in str(caught.value)


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_bisection_does_not_take_is_said(name):
    with pytest.raises(UsageError, match=f"{name}: "):
        read([*BOTH, "--case", "a", name, "b"])
