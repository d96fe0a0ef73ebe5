import os

import pytest
from typer.testing import CliRunner

from jaxmeter.cli.app import app
from jaxmeter.document import terminal
from jaxmeter.reporting.view.program_diffs import describe_diffs
from tests.reporting.recorded_programs import JAXPR, OTHER, compared, program, recorded


def invoke(*arguments):
    return CliRunner().invoke(app, ["diff", *map(str, arguments)])


def test_a_run_without_programs_says_how_to_get_them(tmp_path):
    a, b = recorded(tmp_path / "a"), recorded(tmp_path / "b", {"selu:jit": {}})

    ended = invoke(a.folder.path, b.folder.path, "--case", "selu")

    assert ended.exit_code == 2
    assert "--probe compilation" in ended.stderr


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda path: path.unlink(), "no file 'programs/selu-jit/stablehlo.mlir'"),
        (lambda path: path.write_text("other"), "'programs/selu-jit/stablehlo.mlir' is not what was recorded"),
        (lambda path: os.truncate(path, 2**37), "'programs/selu-jit/stablehlo.mlir' cannot be read: "),
    ],
)
def test_a_file_that_is_missing_or_damaged_is_left_out_and_the_rest_compared(tmp_path, damage, problem):
    a, b = recorded(tmp_path / "a"), recorded(tmp_path / "b")
    damage(next(a.folder.path.rglob("stablehlo.mlir")))

    ended = invoke(a.folder.path, b.folder.path, "--case", "selu")

    assert ended.exit_code == 0
    assert f"stablehlo of selu[n=1] selu:jit: {problem}" in ended.stderr
    assert "selu:jit: same program" in ended.stdout


def test_nothing_that_can_be_read_is_an_error(tmp_path):
    a, b = recorded(tmp_path / "a", {"jaxpr": JAXPR}), recorded(tmp_path / "b")
    next(a.folder.path.rglob("jaxpr.txt")).write_text("other")

    ended = invoke(a.folder.path, b.folder.path, "--case", "selu")

    assert ended.exit_code == 2
    assert "is not what was recorded" in ended.stderr


def test_a_folder_without_a_run_is_an_error(tmp_path):
    ended = invoke(tmp_path / "none", tmp_path / "none", "--case", "selu")

    assert ended.exit_code == 2
    assert "no such folder" in ended.stderr


def test_packages_of_the_users_own_that_changed_may_explain_a_difference():
    told = terminal.write(
        describe_diffs(("a", "b"), (compared(program(), program(OTHER)),), (), "mypkg: step.py changed")
    )

    assert "What may explain a difference (1)\n  mypkg: step.py changed\n" in told
