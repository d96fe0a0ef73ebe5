"""A machine tested with programs that are equal, and the runs that tell it afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jaxmeter.harness.record import RunFolder, read_manifest
from jaxmeter.harness.record.self_test import SelfTest, find_self_test, keep_self_test, locate_self_test
from jaxmeter.reporting.load import load
from jaxmeter.reporting.view import build
from tests import samples

pytestmark = pytest.mark.end_to_end

TWO_CASES = """
'''Adds one to few or many.'''

import jax.numpy as jnp

from jaxmeter import workload


@workload(inputs=lambda key, *, n: jnp.ones(n), params={"n": (2, 3)}, reference=lambda x: x + 1,
          modes=("eager", "jit"), peers={"numpy": lambda x: x + 1})
def increment(x):
    return x + 1
"""

MEASURED = ("--quick", "--probe", "numerics")


@pytest.mark.slow
@pytest.mark.alone
def test_equal_programs_are_timed_in_several_runs_and_later_runs_tell_what_was_found(harness, tmp_path):
    (tmp_path / "two.py").write_text(TWO_CASES)
    there = ("--suites", "two.py", "--machine", "lab 3")

    ended = harness("self-test", *there, "--budget", "40s", "--json", "--quiet")

    assert ended.returncode == 0, ended.stdout + ended.stderr
    told = json.loads(ended.stdout)
    found = find_self_test(tmp_path / "results", "lab 3")
    assert isinstance(found, SelfTest)
    assert (found.machine, found.cases) == ("lab 3", 2)
    assert found.runs >= 2
    assert found.speedups.compared == 2 * found.runs
    assert found.times is not None
    between = 2 * (found.runs - 1)
    assert (found.times.compared, found.times.intervals) == (between, between)
    path = locate_self_test(Path("results"), "lab 3")
    assert (told["file"], told["exit_code"], told["self_test"]["runs"]) == (str(path), 0, found.runs)
    assert list((tmp_path / "results").rglob("*")) == [tmp_path / path.parent, tmp_path / path]

    harness("run", *there, *MEASURED, "--run-id", "here")

    manifest = read_manifest(RunFolder(tmp_path / "results" / "here"))
    assert (manifest.machine, manifest.self_test) == ("lab 3", found)
    page = build(load([tmp_path / "results" / "here"]))
    assert page.summary[-1].startswith("On this machine (lab 3) the self-test of ")


def test_a_damaged_self_test_is_a_warning_and_the_run_goes_on_without(harness, tmp_path, suite):
    keep_self_test(tmp_path / "results", samples.self_test(machine="lab 3")).write_text("{")

    ended = harness("run", "--suites", suite, *MEASURED, "--run-id", "it", "--machine", "lab 3")

    assert ended.returncode == 0
    assert "damaged" in ended.stderr
    assert "the run continues without a self-test; repeat it with: jaxmeter self-test" in ended.stderr
    manifest = read_manifest(RunFolder(tmp_path / "results" / "it"))
    assert (manifest.machine, manifest.self_test) == ("lab 3", None)


def test_a_budget_that_does_not_reach_ends_with_3_and_keeps_what_was_known(harness, tmp_path, suite):
    keep_self_test(tmp_path / "results", samples.self_test(machine="lab 3"))

    ended = harness("self-test", "--suites", suite, "--budget", "1s", "--machine", "lab 3")

    assert ended.returncode == 3
    assert "no self-test: 2 runs are needed that time all cases at least thrice, and 0 of 1 did" in ended.stderr
    assert find_self_test(tmp_path / "results", "lab 3") == samples.self_test(machine="lab 3")
    assert len(list((tmp_path / "results").rglob("*"))) == 2


def test_a_machine_without_a_name_is_refused(harness, suite):
    ended = harness("self-test", "--suites", suite, "--machine", "")

    assert ended.returncode == 2
    assert "--machine '' is invalid; give 1 to 100 printable characters" in ended.stderr
