"""The table of verbs, and how they are found."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from jaxmeter.cli import app as cli
from jaxmeter.cli.app import VERBS, app, load_verb

NAMES = [name for verbs in VERBS.values() for name in verbs]
SHARED = {"app", "arguments", "complaints", "ending", "inputs", "launching", "measuring", "request"}


def test_every_file_is_a_verb_or_shared():
    files = {path.stem for path in Path(cli.__file__).parent.glob("*.py")} - {"__init__"}

    assert files == {name.replace("-", "_") for name in NAMES} | SHARED


@pytest.mark.parametrize("name", NAMES)
def test_every_verb_is_loaded_by_its_name_and_its_help_begins_with_its_summary(name):
    (summary,) = (verbs[name] for verbs in VERBS.values() if name in verbs)

    assert CliRunner().invoke(app, [name, "--help"]).exit_code == 0
    assert name == "night" or load_verb(name).help.startswith(summary)


def test_the_summaries_are_shown_without_loading_a_verb(monkeypatch):
    monkeypatch.setattr(cli, "load_verb", None)

    shown = CliRunner().invoke(app, ["--help"], terminal_width=200).output

    assert [name for name in NAMES if name not in shown] == []
    assert [section for section in VERBS if section not in shown] == []


def test_a_verb_that_is_not_there_is_a_usage_error_that_names_the_nearest():
    ended = CliRunner().invoke(app, ["comparee"])

    assert ended.exit_code == 2
    assert "'compare'" in ended.output


def test_the_shell_completes_verbs_and_the_options_of_a_verb():
    def complete(words: str, count: int) -> str:
        variables = {"_JAXMETER_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(count)}
        return CliRunner().invoke(app, [], prog_name="jaxmeter", env=variables).output

    assert complete("jaxmeter co", 1).split() == ["compare"]
    assert "--fail-on" in complete("jaxmeter compare --f", 2).split()
