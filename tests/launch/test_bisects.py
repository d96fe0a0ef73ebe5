import os
import sys
from pathlib import Path

import pytest

from jaxmeter.launch.bisect import PROCESSES, read_bisect_request
from jaxmeter.launch.options import UsageError

BOTH = ("--good", "jax==0.9.0", "--bad=jax==0.10.2")


def read(words):
    return read_bisect_request(words, "time")


def test_releases_case_and_criterion_are_read_and_the_rest_is_for_measuring():
    asked = read([*BOTH, "--case", "selu", "--variant", "selu:jit", "--metric", "program", "--quick", "--out", "there"])
    trying = read([*BOTH, "--case", "selu", "--try-env", "XLA_FLAGS=--xla_a=1 --xla_b=2", "--try-env=A=1"])

    assert (asked.good, asked.bad, asked.case, asked.variant) == ("jax==0.9.0", "jax==0.10.2", "selu", "selu:jit")
    assert (asked.metric, asked.command, asked.is_walk) == ("program", "", False)
    assert trying.variables == {"XLA_FLAGS": "--xla_a=1 --xla_b=2", "A": "1"}
    assert (asked.measuring, asked.out) == (("--quick", "--out", "there"), Path("there"))


def test_by_default_times_decide_and_all_releases_are_walked():
    asked = read([*BOTH, "--case", "selu"])

    assert (asked.is_walk, asked.processes, asked.resumed, asked.out) == (True, PROCESSES, "", Path("results"))
    assert read([*BOTH, "--case", "selu", "--metric", "time", "--processes", "12"]).processes == 12
    by_command = read([*BOTH, "--command", "python check.py"])
    assert (by_command.command, by_command.is_walk) == ("python check.py", False)


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
        ((*BOTH, "--command", "b", "--try-env", "XLA_FLAGS="), "--try-env is about times"),
        ((*BOTH, "--case", "a", "--metric", "program", "--processes", "6"), "--processes is about times"),
        ((*BOTH, "--case", "a", "--metric", "program", "--resume", "it"), "--resume is about times"),
        ((*BOTH, "--case", "a", "--resume", "it"), "--resume it: no run in results has a name that begins with it"),
        ((*BOTH, "--case", "a", "--try-env", "XLA_FLAGS"), "--try-env 'XLA_FLAGS' is not NAME=VALUE"),
        ((*BOTH, "--case", "a", "--select=b"), "--select: name one case: --case"),
    ],
)
def test_what_cannot_be_done_is_said(arguments, said):
    with pytest.raises(UsageError) as caught:
        read(arguments)

    assert said in str(caught.value)
