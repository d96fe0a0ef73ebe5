import io
import os

import pytest
from rich.cells import cell_len
from rich.console import Console
from typer.testing import CliRunner

from jaxmeter.cli.app import app
from jaxmeter.document import terminal
from jaxmeter.reporting.view.program_diffs import describe_diffs
from tests import samples
from tests.reporting.recorded_programs import JAXPR, OTHER, TEXTS, compared, program, recorded


def invoke(*arguments):
    return CliRunner().invoke(app, ["diff", *map(str, arguments)])


def shown(*diffs, encoding="utf-8", width=100, around=(), packages=""):
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    terminal.show(describe_diffs(("a", "b"), diffs, around, packages), Console(file=file, width=width))
    file.seek(0)
    return file.read()


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
        (
            lambda path: os.truncate(path, 2**37),
            "'programs/selu-jit/stablehlo.mlir' cannot be read: ",
        ),
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


@pytest.mark.parametrize("width", [40, 100, 200])
def test_it_fits_a_hundred_columns(width):
    long = {kind: text.replace("tanh", "t" * 200).replace("mul", "m" * 200) for kind, text in TEXTS.items()}

    text = shown(compared(program(), program(long)), width=width)

    assert max(map(cell_len, text.splitlines())) <= min(width, 100)


def test_an_output_that_takes_ascii_only_gets_likenesses():
    text = shown(compared(program(), program(OTHER, memory={"planned_peak_bytes": 5})), encoding="ascii")

    assert text.isascii()
    assert "planned peak 1.17 KiB -> 5 B" in text


def test_hostile_text_is_only_text(tmp_path):
    text = samples.HOSTILE[5]  # which steers a terminal
    hostile = {**OTHER, "hlo": OTHER["hlo"].replace("jit(f)/tanh", "\x1b[31m\u202e [red]x[/red]")}
    case = samples.planned_case(text, params={"n": 1}, variants=("selu:jit",), id="1")
    machine = samples.environment(variables={text: text})
    a = recorded(tmp_path / "a", case=case)
    b = recorded(tmp_path / "b", hostile, case=case, environment=machine)

    ended = invoke(a.folder.path, b.folder.path, "--case", "*")

    assert ended.exit_code == 0
    assert not {"\x1b", "\u202e"} & set(ended.stdout)
    assert "different program" in ended.stdout


def test_packages_of_the_users_own_that_changed_may_explain_a_difference():
    told = shown(compared(program(), program(OTHER)), packages="mypkg: step.py changed")

    assert "What may explain a difference (1)\n  mypkg: step.py changed\n" in told
