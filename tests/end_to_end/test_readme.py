"""What README and documentation tell a new user to type works as written; tests/test_docs.py follows their links."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from jaxmeter.harness.record import RunRecord, read_json
from jaxmeter.launch.backends import OPTIONS
from jaxmeter.launch.runs import WITH_CAPTURES
from tests.end_to_end.conftest import CHECKOUT

pytestmark = pytest.mark.end_to_end

README = (CHECKOUT / "README.md").read_text(encoding="utf8")
WHERE_THE_TIME_GOES = (CHECKOUT / "docs" / "where-the-time-goes.md").read_text(encoding="utf8")
RUNNING = (CHECKOUT / "docs" / "running.md").read_text(encoding="utf8")
SET_UP = README.split("## Quick start")[1].split("```sh\n")[1].split("```")[0]


def list_options(table: str) -> set[str]:
    return set(re.findall(r"`[^`]*?(--[a-z-]+)", table))


def find_table(page: str, heading: str) -> str:
    return page.split(heading)[1].split("\n\n", maxsplit=1)[0]


def run_as_installed(folder: Path, commands: list[str]) -> list[str]:
    """What each command prints, one after the other, where `jaxmeter` and `python` are what `pip install` makes.

    A browser is a program that does nothing, and nox runs and measures in the environment of the tests.
    """
    nox = f"-m nox --non-interactive --no-venv --no-install -f {CHECKOUT / 'noxfile.py'}"
    (folder / "bin").mkdir(exist_ok=True)
    for name, words in {"jaxmeter": "-m jaxmeter", "nox": nox, "python": ""}.items():
        program = folder / "bin" / name
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {words} "$@"\n')
        program.chmod(0o755)
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    variables = {"PYTHONPATH": str(CHECKOUT), "PATH": path, "BROWSER": "true", "JAXMETER_RUNTIME": "here"}
    printed = []
    for line in commands:
        ended = subprocess.run(
            ["bash", "-c", line],
            cwd=folder,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, f"{line}\n{ended.stdout}\n{ended.stderr}"
        printed.append(ended.stdout)
    return printed


def test_the_commands_run_as_written_one_after_the_other(tmp_path):
    block = README.split("<!-- These lines are run by a test, in this order. -->")[1].split("```")[1]
    commands = block.strip().splitlines()[1:]
    assert len(commands) == 5

    # One timing process of each case is enough to see that the line is one that runs.
    one = "--run-id example --processes 1"
    run_as_installed(tmp_path, [line.replace("--run-id example", one) for line in commands])

    assert (tmp_path / "results" / "example" / "run.json").is_file()
    assert list((tmp_path / "reports").glob("*.html"))
    assert (tmp_path / "summary.md").is_file()


def test_the_call_of_a_notebook_runs_as_written(tmp_path):
    block = README.split("<!-- This program is run by a test. -->")[1].split("```python\n")[1].split("```")[0]
    cell = block.strip().splitlines()
    assert cell[-1].startswith("jaxmeter.measure(")
    (tmp_path / "cell.py").write_text("\n".join([*cell[:-1], f"print({cell[-1]})"]), encoding="utf8")

    (shown,) = run_as_installed(tmp_path, ["python cell.py"])

    assert re.search(r"^step:jit +\S+× +\[", shown, re.MULTILINE), shown


def test_the_captured_step_runs_as_written_and_is_shown_as_printed(tmp_path):
    block = WHERE_THE_TIME_GOES.split("run by a test. -->\n```python\n")[1]
    program, commands = block.split("```")[0], block.split("```sh\n")[1].split("```")[0].splitlines()
    example = block.split("```text\n")[1].split("```")[0]
    (tmp_path / "train.py").write_text(program, encoding="utf8")
    assert commands == ["python train.py", "jaxmeter trace log"]

    shown = run_as_installed(tmp_path, commands)[1]

    titles = (
        "50 traced steps",
        "Wall time of the traced step",
        "Times of the traced step",
        "Operations, by",
        "Lines of",
    )
    for page in (example, shown):
        starts = [line for line in page.splitlines() if line.startswith(titles)]
        assert [line.startswith(title) for line, title in zip(starts, titles, strict=True)] == [True] * len(titles)
        assert "train.py:6\n" in page
        assert "traced step" in page.splitlines()[-1]


@pytest.mark.slow
def test_the_suite_measures_what_the_text_says(tmp_path, harness):
    block = README.split("### A suite in 15 lines")[1].split("```python\n")[1].split("```")[0]
    (tmp_path / "softplus.py").write_text(block, encoding="utf8")
    lines = [line for line in block.splitlines() if line and not line.lstrip().startswith(("#", '"""'))]
    assert len(lines) <= 15

    words = ("--suites", "softplus.py", "--quick", "--probe", "timing", "--processes", "3", "--run-id", "it")
    ended = harness("run", *words)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    (case,) = read_json(tmp_path / "results" / "it" / "run.json", RunRecord).manifest.cases
    assert case.baseline == "softplus:jit"
    line = r"^  stable:jit +(?:! )?\S+\s\S+ +\[.*\] +(?:! )?\S+× +\["
    assert re.search(line, ended.stdout, re.MULTILINE), ended.stdout
    assert {variant.implementation for variant in case.variants} == {"softplus", "stable"}
    assert {variant.mode for variant in case.variants} == {"eager", "jit"}


def test_every_option_of_a_run_stands_in_the_table_and_no_other(harness):
    offered = set(re.findall(r"--[a-z-]+", harness("run", "--help").stdout)) - {"--help"}

    assert list_options(find_table(RUNNING, "| option of `run` | |")) == offered


def test_every_option_of_the_launcher_stands_in_the_table_and_no_other():
    table = find_table(RUNNING, "| option of `--runtime auto`, `local`, `container` | |")

    # A rehearsal is the harness' own; in a container the launcher adds to it.
    shared = {"--runtime", "--image", "--base-image", "--dry-run", "--open", WITH_CAPTURES}
    assert list_options(table) == {*shared, *OPTIONS}


def test_every_option_of_a_declaration_stands_on_the_page_of_suites():
    from jaxmeter.harness.declare.declaration import Caching, Declaration, ImplementationOptions, Needs, Peer, State

    page = (CHECKOUT / "docs" / "suites.md").read_text(encoding="utf8")
    structures = (Declaration, ImplementationOptions, State, Caching, Needs, Peer)
    options = {name for structure in structures for name in inspect.signature(structure).parameters}

    assert options - {"function"} - set(re.findall(r"\b(\w+)=", page)) == set()


def test_each_line_of_the_set_up_makes_its_environment_and_runs_a_session():
    set_up = 'python3 -m venv .venv && . .venv/bin/activate && python -m pip install "nox>=2026.7.11" && '
    sessions = ("nox -s cpu -- --quick", "nox -s tests")

    lines = [line.split("  #")[0].rstrip() for line in SET_UP.strip().splitlines()]
    assert lines == [set_up + name for name in sessions]
    assert 'nox.needs_version = ">=2026.7.11"' in (CHECKOUT / "noxfile.py").read_text(encoding="utf8")


def test_the_lines_of_the_set_up_are_what_continuous_integration_runs():
    script = (CHECKOUT / ".ci" / "run").read_text(encoding="utf8")

    run = re.findall(r"^sessions \.ci/clean-machine (\S+)$", script, re.MULTILINE)
    assert run == [re.findall(r"nox -s (\S+)", line)[0] for line in SET_UP.strip().splitlines()]


def list_lines(page: str) -> list[str]:
    """The commands of a page's blocks, in their order."""
    text = (CHECKOUT / page).read_text(encoding="utf8")
    blocks = re.findall(r"^```(?:sh|console)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]


@pytest.mark.slow
def test_the_commands_of_the_first_tutorial_and_comparisons_of_its_runs_end_well(tmp_path):
    _, measure, doctor, again, merge = list_lines("docs/tutorial/first_run.md")
    results = tmp_path / "results"
    # One small suite, a process of each kind; nox runs in the checkout, where a reader's results are, too.
    options = f"--select selu --processes 1 --out {results}"

    run_as_installed(
        tmp_path,
        [
            f"{measure} {options} --run-id RUN",
            # Without the base image of the containers the plain line ends with exit code 2, and says so.
            f"{doctor} -- --runtime local",
            f"{again.replace('results/', f'{results}/')} {options} --run-id AGAIN",
            f"{merge.replace('results/', f'{results}/')} --out {tmp_path / 'page.html'}",
            f"nox -s compare -- {results}/RUN {results}/AGAIN",
            # With so few processes nothing may be sure, which is exit code 3.
            f"nox -s gate -- {results}/RUN --out {results} || [ $? -eq 3 ]",
        ],
    )

    assert "AGAIN" in (tmp_path / "page.html").read_text(encoding="utf8")


@pytest.mark.slow
def test_the_commands_of_the_tutorial_on_a_train_step_run_one_after_the_other(tmp_path):
    (tmp_path / "docs").symlink_to(CHECKOUT / "docs")
    *_, measure, report, again, compare = list_lines("docs/tutorial/your_train_step.md")

    lines = [f"{measure} --processes 1 --run-id RUN", report, f"{again} --processes 2 --run-id NEW_RUN", compare]
    *_, compared = run_as_installed(tmp_path, lines)

    assert "Of 4 times" in compared
