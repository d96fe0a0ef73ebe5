"""Verbs that measure in other environments: their words, where they run, and how they end."""

import subprocess
import sys
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from jaxmeter.cli import elsewhere, gate
from jaxmeter.cli.app import VERBS, app, choose_verb
from jaxmeter.cli.launching import FORWARDS, end, is_launched, list_words
from jaxmeter.launch.options import UsageError
from jaxmeter.launch.shell import ProgramError

OTHERS = ["list", "bisect", "report", "compare", "diff", "export", "trace", "push", "machine"]


def read(*words):
    """The words that a verb with some options of its own passes on."""
    found = []
    verb = typer.Typer()

    @verb.command(context_settings=FORWARDS)
    def command(
        context: typer.Context,
        runs: Annotated[list[str] | None, typer.Argument()] = None,
        budgets: str | None = None,
        exact: Annotated[bool, typer.Option("--exact")] = False,
        try_env: list[str] | None = None,
    ) -> None:
        found.extend(list_words(context))

    assert CliRunner().invoke(verb, list(words)).exit_code == 0
    return found


@pytest.mark.parametrize(
    ("words", "passed"),
    [
        ((), []),
        (("base",), ["base"]),
        (("base", "--budgets=b.toml", "--exact"), ["base", "--budgets", "b.toml", "--exact"]),
        (("base", "--select", "selu*", "--quick"), ["base", "--select", "selu*", "--quick"]),
        (("base", "--try-env", "A=1", "--try-env", "B=--x=2"), ["base", "--try-env", "A=1", "--try-env", "B=--x=2"]),
        (("base", "--select=a b", "--budgets", "-"), ["base", "--select=a b", "--budgets", "-"]),
    ],
)
def test_a_verb_passes_on_its_own_options_and_those_that_it_does_not_know(words, passed):
    assert read(*words) == passed


@pytest.mark.parametrize("verb", OTHERS)
def test_a_variable_has_every_other_verb_run_in_an_environment_of_locked_packages(verb, monkeypatch):
    called = []
    monkeypatch.setattr(elsewhere, "call_elsewhere", lambda verb, words: called.append((verb, words)) or 0)
    monkeypatch.setenv("JAXMETER_RUNTIME", "auto")

    ended = CliRunner().invoke(app, [verb, "--help", "a", "--select", "b"])

    assert (ended.exit_code, called) == (0, [(verb, ["--help", "a", "--select", "b"])])


@pytest.mark.parametrize(
    ("verb", "words", "variable", "expected"),
    [
        ("run", (), "", False),
        ("run", ("--runtime", "here"), "auto", False),
        ("run", ("--quick", "--runtime=local"), "", True),
        ("self-test", ("--runtime", "container"), "", True),
        ("report", ("--runtime", "local"), "", False),
        ("report", (), "auto", True),
        ("report", (), "here", False),
    ],
)
def test_an_option_chooses_where_to_measure_and_a_variable_where_all_else_runs(
    verb, words, variable, expected, monkeypatch
):
    monkeypatch.setenv("JAXMETER_RUNTIME", variable)

    assert is_launched(verb, words) is expected


def test_verbs_that_make_environments_themselves_stay_where_they_are(monkeypatch):
    monkeypatch.setenv("JAXMETER_RUNTIME", "auto")

    for verb in ("gate", "upgrade", "nightly", "doctor", "schedule", "images", "wheels"):
        assert choose_verb(verb, ()).help.startswith(next(group[verb] for group in VERBS.values() if verb in group))


def test_a_runtime_that_does_not_exist_is_named():
    ended = CliRunner().invoke(app, ["run", "--runtime", "docker"])

    assert ended.exit_code == 2
    assert "--runtime 'docker' is unknown; allowed: here, auto, local, container" in ended.stderr


def fail(error):
    raise error


@pytest.mark.parametrize(
    ("ended", "code"),
    [
        *((code, code) for code in (0, 1, 2, 3, 130)),
        (137, 3),
        (UsageError("no"), 2),
        (ProgramError(2), 2),
        (ProgramError(1), 3),
        (KeyboardInterrupt(), 130),
        (OSError(28, "No space left on device", "/results"), 3),
    ],
    ids=str,
)
def test_a_verb_ends_with_a_documented_code_and_with_1_only_for_a_regression(ended, code):
    with pytest.raises(typer.Exit) as found:
        end(lambda: ended if isinstance(ended, int) else fail(ended))

    assert found.value.exit_code == code


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["base"], ("measured", ["base"])),
        (["base", "--select", "selu"], ("measured", ["base", "--select", "selu"])),
        (["base", "--budgets", "b.toml", "--quick"], ("measured", ["base", "--quick", "--budgets", "b.toml"])),
        (["base", "new"], ("judged", ["base", "new"])),
        (["base", "new", "--exact"], ("judged", ["base", "new"])),
    ],
)
def test_a_gate_measures_against_one_run_and_judges_two(words, expected, monkeypatch):
    from jaxmeter.cli import judging

    done = []
    monkeypatch.setattr(gate, "pass_gate", lambda shell, words: done.append(("measured", words)) or 0)
    monkeypatch.setattr(judging, "judge_runs", lambda *runs, **options: done.append(("judged", list(runs))))

    assert CliRunner().invoke(app, ["gate", *words]).exit_code == 0
    assert done == [expected]


def test_two_runs_are_judged_where_records_can_be_read(monkeypatch):
    called = []
    monkeypatch.setattr(gate, "call_elsewhere", lambda verb, words: called.append((verb, words)) or 1)
    monkeypatch.setenv("JAXMETER_RUNTIME", "auto")

    assert CliRunner().invoke(app, ["gate", "base", "new", "--exact"]).exit_code == 1
    assert called == [("gate", ["base", "new", "--exact"])]


def test_what_calls_another_environment_needs_no_jax_and_no_package_of_the_report():
    names = "upgrade, nightly, gate, doctor, schedule, images, wheels, elsewhere"
    heavy = ("jax", "numpy", "pandas", "scipy", "jinja2", "fsspec")
    code = f"import sys; from jaxmeter.cli import app, {names}; print([x for x in {heavy} if x in sys.modules])"

    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ended.stdout.strip() == "[]"
