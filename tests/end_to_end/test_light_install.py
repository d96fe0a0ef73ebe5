"""A plain installation under the oldest jax that it supports: it measures and judges, and names what it lacks."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from tests.end_to_end.conftest import build_wheel, run_outside, write_small_suite

pytestmark = [pytest.mark.end_to_end, pytest.mark.releases]

OLDEST_JAX = "0.7.2"
MOST_PACKAGES = 40

NOTEBOOK = """
import jax.numpy as jnp, jaxmeter
print(jaxmeter.measure(lambda x: x * 2, jnp.ones(1000)))
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The folder of programs of an environment with the wheel of this checkout and the oldest jax, made by pip."""
    folder = tmp_path_factory.mktemp("light")
    wheel = build_wheel(folder)
    subprocess.run([sys.executable, "-m", "venv", str(folder / "environment")], check=True)
    install = [folder / "environment/bin/python", "-m", "pip", "install", "--quiet", wheel, f"jax=={OLDEST_JAX}"]
    subprocess.run(install, check=True)
    return folder / "environment" / "bin"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A user's repository with a suite."""
    folder = tmp_path_factory.mktemp("project")
    write_small_suite(folder)
    return folder


MEASURING = ("--suites", "small.py", "--quick", "--processes", "3")


@pytest.fixture(scope="module")
def measured(programs, project):
    """A run of the suite."""
    ended = run_outside(project, programs / "jaxmeter", "run", *MEASURING, "--run-id", "base")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert (project / "results" / "base" / "run.json").is_file()
    return project / "results" / "base"


def test_a_plain_installation_has_what_measuring_needs_and_no_more(programs, project):
    listed = json.loads(run_outside(project, programs / "python", "-m", "pip", "list", "--format=json").stdout)
    names = {package["name"].lower(): package["version"] for package in listed}

    assert names["jax"] == OLDEST_JAX
    assert len(names) <= MOST_PACKAGES
    assert not {"pandas", "jinja2", "matplotlib", "flax", "optax", "xprof", "fsspec"} & set(names)


def test_it_gates_a_change(programs, project, measured):
    gated = run_outside(project, programs / "jaxmeter", "gate", "results/base", *MEASURING, "--verdict", "verdict.json")

    assert gated.returncode in (0, 3), gated.stdout + gated.stderr  # so few processes may decide nothing
    assert json.loads((project / "verdict.json").read_text("utf8"))["exit_code"] == gated.returncode


def test_it_compares_and_diffs(programs, project, measured):
    compared = run_outside(project, programs / "jaxmeter", "compare", "results/base", "results/base")
    diffed = run_outside(
        project, programs / "jaxmeter", "diff", "results/base", "results/base", "--case", "increment[n=1]"
    )

    assert compared.returncode == 0, compared.stderr
    assert diffed.returncode == 0, diffed.stderr
    assert "increment" in diffed.stdout


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (("report", "results/base"), "report"),
        (("push", "results/base", "file:///nowhere/store"), "report"),
        (("trace", "--open", "results/base"), "viewer"),
    ],
    ids=["report", "push", "trace --open"],
)
def test_a_command_that_lacks_a_package_names_the_extra_that_has_it(programs, project, measured, words, extra):
    ended = run_outside(project, programs / "jaxmeter", *words)

    assert ended.returncode == 2, ended.stdout + ended.stderr
    assert re.search(rf"^error: \w+ is not installed: pip install 'jaxmeter\[{extra}\]'$", ended.stderr, re.MULTILINE)


def test_it_examines_the_machine(programs, project):
    ended = run_outside(project, programs / "jaxmeter", "doctor")

    assert ended.returncode == 0, ended.stdout
    assert f"jax {OLDEST_JAX}" in ended.stdout


def test_a_function_is_measured_in_one_call(programs, project):
    ended = run_outside(project, programs / "python", "-c", NOTEBOOK)

    assert ended.returncode == 0, ended.stderr
    assert "jit" in ended.stdout


def test_own_suites_that_need_more_are_left_out_by_name(programs, project):
    ended = run_outside(project, programs / "jaxmeter", "list")

    assert ended.returncode == 0, ended.stderr
    assert "selu" in ended.stdout
    assert "the suite mlp is left out: optax is not installed: pip install 'jaxmeter[suites]'" in (
        ended.stdout + ended.stderr
    )
