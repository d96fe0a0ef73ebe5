"""What the README tells a new user to type works, as written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.record import Run, read_json
from tests.end_to_end.conftest import CHECKOUT, Harness

pytestmark = pytest.mark.end_to_end

README = (CHECKOUT / "README.md").read_text(encoding="utf8")
TWO_LINES = README.split("## Two lines")[1].split("```sh\n")[1].split("```")[0]


def test_the_commands_run_as_written_one_after_the_other(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "PATH": path}
    block = README.split("<!-- These lines are run by a test, in this order. -->")[1].split("```")[1]
    commands = block.strip().splitlines()[1:]
    assert len(commands) == 6

    for command in commands:
        ended = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, f"{command}\n{ended.stdout}\n{ended.stderr}"

    assert (tmp_path / "results" / "example" / "run.json").is_file()
    assert list((tmp_path / "reports").glob("*.html"))
    assert (tmp_path / "summary.md").is_file()


def test_the_suite_measures_what_the_text_says(tmp_path: Path, harness: Harness) -> None:
    block = README.split("## A suite in 15 lines")[1].split("```python\n")[1].split("```")[0]
    (tmp_path / "softplus.py").write_text(block, encoding="utf8")
    lines = [line for line in block.splitlines() if line and not line.lstrip().startswith(("#", '"""'))]
    assert len(lines) <= 15

    ended = harness("run", "--suites", "softplus.py", "--quick", "--launches", "3", "--run-id", "it")

    assert ended.returncode == 0, ended.stdout + ended.stderr
    (case,) = read_json(tmp_path / "results" / "it" / "run.json", Run).manifest.cases
    assert case.baseline == "softplus:eager"
    assert {variant.implementation for variant in case.variants} == {"softplus", "stable"}
    assert {variant.mode for variant in case.variants} == {"eager", "jit", "aot"}


def test_every_option_of_run_stands_in_the_table_and_no_other(harness: Harness) -> None:
    table = README.split("| option of `run` | |")[1].split("\n\n")[0]

    offered = set(re.findall(r"--[a-z-]+", harness("run", "--help").stdout)) - {"--help"}

    assert set(re.findall(r"`[^`]*?(--[a-z-]+)", table)) == offered


def test_the_line_for_tests_is_what_continuous_integration_runs() -> None:
    assert "nox -s tests" in TWO_LINES
    script = (CHECKOUT / ".ci" / "run").read_text(encoding="utf8")
    assert re.search(r'^sessions\(\) \{\n    "\$\{nox\[@\]\}" -s "\$@"', script, re.MULTILINE)
    assert re.search(r"^sessions tests$", script, re.MULTILINE)


def test_every_relative_link_of_the_documentation_leads_somewhere() -> None:
    for page in (*CHECKOUT.glob("*.md"), *CHECKOUT.glob("docs/*.md"), *CHECKOUT.glob("benchmarks/*.md")):
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf8")):
            if "://" not in link:
                assert (page.parent / link).exists(), f"{page.name}: {link}"
