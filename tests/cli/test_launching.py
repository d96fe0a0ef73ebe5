"""Verbs that measure in other environments: their words, where they run, and how they end."""

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from jaxmeter.cli import gate, launching
from jaxmeter.cli.app import VERBS, app, choose_verb
from jaxmeter.cli.launching import FORWARDS, end, is_launched, list_words
from jaxmeter.launch.options import InstallationError, UsageError
from jaxmeter.launch.shell import ProgramError

OTHERS = [("list", ["--help", "a", "--select", "b"]), ("night", ["begin", "s3://x/y", "--", "--quick"])]


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
        (("base", "--budgets=b.toml", "--exact"), ["base", "--budgets", "b.toml", "--exact"]),
        (("base", "--select", "selu*", "--quick"), ["base", "--select", "selu*", "--quick"]),
        (("base", "--try-env", "A=1", "--try-env", "B=--x=2"), ["base", "--try-env", "A=1", "--try-env", "B=--x=2"]),
        (("base", "--select=a b", "--budgets", "-"), ["base", "--select=a b", "--budgets=-"]),
        (("base", "--try-env=-a", "--budgets=--b"), ["base", "--budgets=--b", "--try-env=-a"]),
    ],
)
def test_a_verb_passes_on_its_own_options_and_those_that_it_does_not_know(words, passed):
    assert read(*words) == passed


@pytest.mark.parametrize(("verb", "words"), OTHERS)
def test_a_variable_has_every_other_verb_run_in_an_environment_of_locked_packages(verb, words, monkeypatch):
    called = []
    monkeypatch.setattr(launching, "call_elsewhere", lambda verb, words: called.append((verb, words)) or 0)
    monkeypatch.setenv("JAXMETER_RUNTIME", "auto")

    ended = CliRunner().invoke(app, [verb, *words])

    assert (ended.exit_code, called) == (0, [(verb, words)])


@pytest.mark.parametrize(
    ("verb", "words", "variable", "expected"),
    [
        ("run", (), "", False),
        ("run", ("--runtime", "here"), "auto", False),
        ("run", ("--quick", "--runtime=local"), "", True),
        ("self-test", ("--runtime", "container"), "", True),
        ("report", ("--runtime", "local"), "", False),
        ("report", (), "auto", True),
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


@pytest.mark.parametrize("words", [["--quick", "--runtime"], ["--runtime", "docker"]])
def test_a_runtime_without_a_known_name_is_wrong_usage(words):
    ended = CliRunner().invoke(app, ["run", *words])

    assert ended.exit_code == 2
    assert words[-1] == "--runtime" or "--runtime 'docker' is unknown; allowed: here, auto, local" in ended.stderr


def test_a_nox_session_without_jax_measures_nothing_in_its_own_environment(monkeypatch):
    monkeypatch.setenv("JAXMETER_IN_NOX", sys.executable)
    monkeypatch.setattr("jaxmeter.launch.request.find_spec", lambda name: None)

    ended = CliRunner().invoke(app, ["run", "--runtime", "here", "--quick"])

    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "--runtime local" in ended.stderr


def test_what_nox_passes_on_is_a_verb():
    text = (Path(__file__).parents[2] / "noxfile.py").read_text("utf8")
    (passed,) = re.findall(r"^VERBS = (.*)$", text, re.MULTILINE)

    assert set(ast.literal_eval(passed)) < {verb for group in VERBS.values() for verb in group}


def fail(error):
    raise error


@pytest.mark.parametrize(
    ("ended", "code"),
    [
        *((code, code) for code in (0, 1, 2, 3, 130)),
        (137, 3),
        (UsageError("no"), 2),
        (InstallationError("no network"), 3),
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


@pytest.fixture
def gated(monkeypatch):
    """What a gate did: measured with these words, or judged with these runs and options."""
    from jaxmeter.cli import compare

    done = []
    monkeypatch.setattr(gate, "pass_gate", lambda shell, words: done.append(("measured", words)) or 0)
    monkeypatch.setattr(compare, "judge_runs", lambda *runs, **options: done.append((*runs, options)))
    return done


def test_a_gate_measures_against_one_run_and_judges_two_with_its_options(gated):
    files = {"budgets_file": Path("b.toml"), "markdown_file": Path("m.md"), "verdict_file": Path("v.json")}
    words = [
        "--exact",
        "--min-effect",
        "5%",
        *(f"--{name.removesuffix('_file')}={path}" for name, path in files.items()),
    ]
    none = dict.fromkeys(("confirmed_by", *files))

    for runs in (["base", "--select", "selu"], ["base", "new"], ["base", "new", *words, "--confirmed-by", "again"]):
        assert CliRunner().invoke(app, ["gate", *runs]).exit_code == 0

    assert gated == [
        ("measured", ["base", "--select", "selu"]),
        ("base", "new", none | {"exact": False, "min_effect": "3%"}),
        ("base", "new", files | {"exact": True, "min_effect": "5%", "confirmed_by": "again"}),
    ]


@pytest.mark.parametrize(
    "words", [("--quick", "base"), ("--select", "selu", "base"), ("base", "new", "--quick"), ("base", "new", "newer")]
)
def test_a_gate_refuses_words_that_it_could_only_ignore_or_misread(words, monkeypatch):
    monkeypatch.setattr(gate, "call_elsewhere", fail)
    for runtime in ("", "auto"):
        monkeypatch.setenv("JAXMETER_RUNTIME", runtime)
        assert CliRunner().invoke(app, ["gate", *words]).exit_code == 2


def test_two_runs_are_judged_where_records_can_be_read(monkeypatch):
    called = []
    monkeypatch.setattr(gate, "call_elsewhere", lambda verb, words: called.append((verb, words)) or 1)
    monkeypatch.setenv("JAXMETER_RUNTIME", "auto")

    assert CliRunner().invoke(app, ["gate", "base", "new", "--exact"]).exit_code == 1
    assert called == [("gate", ["base", "new", "--exact"])]


def test_what_calls_another_environment_needs_no_jax_and_no_package_of_the_report():
    names = "upgrade, nightly, gate, doctor, schedule, images, wheels, launching"
    heavy = ("jax", "numpy", "pandas", "scipy", "jinja2", "fsspec")
    code = f"import sys; from jaxmeter.cli import app, {names}; print([x for x in {heavy} if x in sys.modules])"

    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ended.stdout.strip() == "[]"
