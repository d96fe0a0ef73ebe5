"""Runs beside the programs of an earlier one, and what becomes of programs that cannot be run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from jaxmeter.harness.record import RunFolder, Status, read_run
from jaxmeter.harness.record.runs import CONFIRMING_PROCESSES
from tests.end_to_end.conftest import Harness, run_program

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow]

SUITE = """
'''Two programs.'''

import jax
import jax.numpy as jnp

from jaxmeter import State, workload


def scaled(x):
    return {body}


@workload(inputs=lambda key, *, n: jnp.linspace(0.0, 1.0, n), params={{"n": 2_000}},
          reference=lambda x: x * 2.0, modes=("eager", "jit", "aot"), tolerance=1e-3)
def double(x):
    return scaled(x)


@workload(inputs=lambda key: ({{"w": jnp.ones(100)}}, jnp.ones(100)), modes=("jit",), state=State(carry={{"state": 0}}),
          reference=lambda state, x: ({{"w": state["w"] + x}}, x.sum()), baseline="step:jit")
def step(state, x):
    return {{"w": state["w"] + x}}, x.sum()


@step.implementation(donate=("state",))
def donated(state, x):
    return {{"w": state["w"] + x}}, x.sum()
"""
PLAIN = "x * 2.0"
SLOWER = "jax.lax.fori_loop(0, 30, lambda _, y: jnp.sin(y) * 0.0 + x * 2.0, x)"


@pytest.fixture
def suite(tmp_path):
    path = tmp_path / "two.py"
    path.write_text(SUITE.format(body=PLAIN))
    return path


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A run of the plain suite, of which every test has a copy."""
    folder = tmp_path_factory.mktemp("measured")
    (folder / "two.py").write_text(SUITE.format(body=PLAIN))
    assert run_program(folder, "run", "--suites", "two.py", "--quick", "--run-id", "before").returncode == 0
    return folder / "results" / "before"


@pytest.fixture
def before(measured, suite, tmp_path):
    """The run of the plain suite, beside the suite."""
    return shutil.copytree(measured, tmp_path / "results" / "before")


def run_slower(harness: Harness, before: Path, suite: Path, run_id: str) -> None:
    """Measures `double`, made slower, beside the program of the run before."""
    suite.write_text(SUITE.format(body=SLOWER))
    ended = harness("run", "--against", before, "--select", "double", "--suites", suite, "--quick", "--run-id", run_id)
    assert ended.returncode == 0, ended.stderr


def statuses(run: Path) -> dict[str, Status]:
    """By variant, how the timing ended, else how the check did."""
    found = {}
    for case in read_run(RunFolder(run)).cases:
        for variant in case.variants:
            outcome = variant.outcomes.get("timing") or variant.outcomes["numerics"]
            found[variant.name] = outcome.status
    return found


@pytest.mark.alone
def test_programs_that_are_still_the_same_are_not_timed_twice(harness, before, tmp_path):
    kept = sorted(path.parent.name for path in before.glob("cases/*/programs/*/program.jaxexport"))
    assert kept == ["donated-jit", "double-jit", "step-jit"]

    ended = harness("run", "--against", "before", "--suites", "two.py", "--run-id", "same")

    assert ended.returncode == 0, ended.stderr
    found = statuses(tmp_path / "results" / "same")
    assert {name: status for name, status in found.items() if name.endswith(" before")} == {
        "double:jit before": Status.SKIPPED,
        "step:jit before": Status.SKIPPED,
        "donated:jit before": Status.SKIPPED,
    }
    gate = run_program(tmp_path, "gate", before, tmp_path / "results" / "same", "--verdict", tmp_path / "verdict.json")
    verdict = json.loads((tmp_path / "verdict.json").read_text())
    # Only stored times judge the whole calls: on a busy machine one may be suspected, and none is confirmed.
    assert gate.returncode in (0, 3), gate.stdout
    assert verdict["regressions"] == []
    assert {one["finding"] for one in verdict["changes"] if one["metric"] == "execution_s"} <= {
        "same",
        "same program",
        "inconclusive",
        "suspected slower",
        "suspected faster",
    }


@pytest.mark.alone
def test_a_slower_program_is_confirmed_by_one_that_was_kept(harness, before, suite, tmp_path):
    run_slower(harness, before, suite, "slow")
    suspects = tmp_path / "suspects.json"

    compared = run_program(tmp_path, "compare", before, tmp_path / "results" / "slow", "--suspects", suspects)

    assert compared.returncode == 1
    assert "double[n=2000] double:jit" in compared.stdout.partition("slower")[2]
    assert {(one["case"], one["variant"]) for one in json.loads(suspects.read_text())["suspects"]} >= {
        ("double[n=2000]", "double:jit")
    }
    confirmed = harness(
        "run", "--against", before, "--suites", suite, "--quick", "--suspects", suspects, "--run-id", "sure"
    )
    assert confirmed.returncode == 0, confirmed.stderr
    (case,) = read_run(RunFolder(tmp_path / "results" / "sure")).manifest.cases
    assert {one.name for one in case.variants} >= {"double:jit", "double:jit before"}
    verdict = tmp_path / "verdict.json"
    judged = run_program(
        tmp_path,
        *("gate", before, tmp_path / "results" / "slow", "--confirmed-by", tmp_path / "results" / "sure"),
        *("--verdict", verdict, "--markdown", tmp_path / "comment.md"),
    )
    assert judged.returncode == 1, judged.stdout
    told = json.loads(verdict.read_text())
    assert told["exit_code"] == 1
    slower = [one for one in told["regressions"] if one["metric"] == "execution_s"]
    assert {one["finding"] for one in slower} == {"slower"}
    (jitted,) = [one for one in slower if one["variant"] == "double:jit"]
    assert jitted["effect"]["count"] == json.loads(suspects.read_text())["processes"] >= CONFIRMING_PROCESSES
    assert "the code of double has changed" in jitted["cause"]
    assert (tmp_path / "comment.md").read_text().startswith("<!-- jaxmeter report -->")


@pytest.mark.alone
def test_a_program_that_was_damaged_is_told_and_nothing_else_suffers(harness, before, suite, tmp_path):
    (one,) = before.glob("cases/double*/programs/double-jit/program.jaxexport")
    one.write_bytes(b"\0" * 100)
    (gone,) = before.glob("cases/step*/programs/step-jit/program.jaxexport")
    gone.unlink()
    suite.write_text(SUITE.format(body=SLOWER))

    ended = harness("run", "--against", before, "--suites", suite, "--run-id", "after")

    assert ended.returncode == 0, ended.stderr
    found = statuses(tmp_path / "results" / "after")
    assert found["double:jit before"] is Status.UNSUPPORTED
    assert found["step:jit before"] is Status.UNSUPPORTED
    assert found["double:jit"] is Status.OK
    assert "another SHA-256" in ended.stdout
    run_program(tmp_path, "compare", before, tmp_path / "results" / "after", "--verdict", tmp_path / "verdict.json")
    changes = json.loads((tmp_path / "verdict.json").read_text())["changes"]
    (time,) = [one for one in changes if (one["variant"], one["metric"]) == ("double:jit", "execution_s")]
    # By stored times alone: a suspicion, contended or not.
    assert (time["finding"], "another SHA-256" in time["reason"]) == ("suspected slower", True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--against", "before", "--suites", "gone.py"), "gone.py"),
        (("--against", "before", "--suspects", "none.json"), "--suspects: none.json"),
        (("--against", "before"), "--suites PATH"),
    ],
)
def test_what_cannot_be_run_beside_another_is_said(harness, before, arguments, words):
    ended = harness("run", *arguments)

    assert ended.returncode == 2
    assert words in " ".join(ended.stderr.replace("│", " ").split())


def test_a_baseline_of_other_inputs_has_nothing_to_replay(harness, before, suite):
    other = SUITE.format(body=PLAIN).replace("jnp.linspace(0.0, 1.0, n)", "jnp.ones(n)")
    suite.write_text(other.replace("jnp.ones(100)}, jnp.ones(100)", "jnp.ones(90)}, jnp.ones(90)"))

    ended = harness("run", "--against", before, "--suites", suite)

    assert ended.returncode == 2
    assert "it keeps no program of these cases" in ended.stderr


def test_a_run_beside_another_is_resumed_without_it(harness, before, suite, tmp_path):
    run_slower(harness, before, suite, "cut")
    cut = tmp_path / "results" / "cut"
    (cut / "run.json").unlink()
    for record in cut.glob("cases/*/case.json"):
        record.unlink()
    before.rename(tmp_path / "moved")

    again = harness("run", "--resume", cut, "--suites", suite)

    assert again.returncode == 0, again.stderr
    assert statuses(cut)["double:jit before"] is Status.OK
