"""What is selected is checked before an environment is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxmeter.cli.bisect import bisect_releases
from jaxmeter.harness.declare.catalogue import DEFAULT_SUITES, find_suites
from jaxmeter.harness.plan.cases import SelectionError, select
from jaxmeter.launch import upgrade
from jaxmeter.launch.command_line import check_names, list_own_names
from jaxmeter.launch.options import UsageError
from jaxmeter.launch.shell import USAGE_ERROR, ProgramError
from jaxmeter.launch.upgrade import compare_environments
from tests import samples
from tests.launch.shells import NotedShell, list_words

CHECKOUT = Path(__file__).resolve().parents[2]
BOTH = ("--old", "jax==0.10.0", "--new", "jax==0.10.2")


class StepsShell(NotedShell):
    """Notes each step; a dry run ends with 2 in the environments that are named."""

    def __init__(self, refusing: str = "") -> None:
        super().__init__(CHECKOUT)
        self.refusing, self.environments = refusing, CHECKOUT / "none"
        self.steps: list[str] = []

    def install(self, *lock_names):
        self.steps.append("install the lock")

    def run(self, *command):
        self.steps.append(list_words(command)[0])
        return 0

    def ask(self, *command):
        assert command[1:6] == ("-P", "-m", "jaxmeter", "run", "--dry-run")
        self.steps.append(f"check in {Path(command[0]).name}")
        if Path(command[0]).name == self.refusing:
            raise ProgramError(USAGE_ERROR)
        return ""


@pytest.fixture
def environments(monkeypatch):
    """Notes which environments of packages are made, in the steps of the shell."""

    def make(shell, wanted):
        shell.steps.append(f"install {wanted.words}")
        return Path("/environments", wanted.words)

    monkeypatch.setattr(upgrade, "prepare_environment", make)
    monkeypatch.setattr(upgrade, "check_environment", lambda wanted, option: None)


def test_names_are_those_that_the_suites_declare_when_they_are_imported():
    pytest.importorskip("jax")  # before a suite imports it
    suites = find_suites([DEFAULT_SUITES])

    assert set(list_own_names(CHECKOUT)) == {named.name for suite in suites for named in (suite, *suite.workloads)}


def test_what_can_match_waits_for_the_sizes_of_the_cases():
    for pattern in ("selu", "sel*", "selu[dtype=float32,n=10000]", "selu[*", "*=32*", "mlp_step*", "?elu"):
        check_names(CHECKOUT, ["--quick", "--select", pattern])


@pytest.mark.parametrize("pattern", ["sellu", "selu2*", "sellu[n=1]", "sel", "Selu"])
def test_what_cannot_match_is_refused_in_the_words_of_a_run(pattern):
    names = list_own_names(CHECKOUT)
    with pytest.raises(UsageError) as caught:
        check_names(CHECKOUT, ["--select", pattern])

    cases = [samples.planned_case(name, suite=name, name=name) for name in names]
    with pytest.raises(SelectionError) as of_a_run:
        select(cases, [pattern])
    assert str(caught.value) == str(of_a_run.value)


def test_a_file_of_suites_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"no suite module or file 'mine\.py'"):
        check_names(CHECKOUT, ["--suites", "mine.py", "--select", "selu"])

    mine = tmp_path / "mine.py"
    mine.touch()
    check_names(CHECKOUT, ["--suites", str(mine), "--select", "what only that file has"])


def test_an_unknown_name_is_refused_before_anything_is_installed(environments):
    shell = StepsShell()

    with pytest.raises(UsageError, match="no case of this level matches --select 'sellu'; nearest: 'selu'"):
        compare_environments(shell, [*BOTH, "--select", "sellu"])
    with pytest.raises(UsageError, match="no case of this level matches --case 'sellu'; nearest: 'selu'"):
        bisect_releases(shell, ["--good", "jax==0.9.0", "--bad", "jax==0.10.2", "--case", "sellu"])

    assert shell.steps == []


def test_unknown_sizes_are_refused_before_the_environments_are_made(environments):
    shell = StepsShell(refusing="python")

    with pytest.raises(ProgramError):
        compare_environments(shell, [*BOTH, "--select", "selu[n=7]"])

    assert shell.steps == ["install the lock", "limits", "check in python"]


def test_suites_of_users_are_checked_in_the_first_environment(environments, tmp_path):
    shell, mine = StepsShell(refusing="jax==0.10.0"), tmp_path / "mine.py"
    mine.touch()

    with pytest.raises(ProgramError):
        compare_environments(shell, [*BOTH, "--suites", str(mine), "--select", "other"])

    assert shell.steps == ["install the lock", "limits", "install jax==0.10.0", "check in jax==0.10.0"]
