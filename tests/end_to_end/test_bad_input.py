"""What cannot be done is said with its value, what is allowed and what to do next; the exit code tells."""

from __future__ import annotations

import pytest

from jaxmeter.harness.record import RunFolder, RunRecord, Stop, StopReason, read_json, read_manifest

pytestmark = pytest.mark.end_to_end


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--select", "matmull"), "no case of this level matches --select 'matmull'; nearest: 'matmul'"),
        (("--suites", "absent.py"), "no suite module or file 'absent.py'"),
        (("--run-id", "a\udcffb"), "'a?b' is not valid UTF-8; choose a name that is"),
        (("--backend", "gpu"), "looked for an NVIDIA GPU"),
    ],
)
def test_unusable_arguments_are_named_before_anything_is_measured(arguments, said, harness, tmp_path):
    ended = harness("run", *arguments)

    assert ended.returncode == 2
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not list((tmp_path / "results").glob("*/*"))


@pytest.mark.slow
def test_a_budget_that_is_used_up_loses_the_rest_and_says_how_to_go_on(harness, suite, tmp_path):
    waits = "import time\n    time.sleep(0.5)  # which no trace tells\n    return x + 1\n"
    suite.write_text(suite.read_text().replace("return x + 1\n", waits))
    options = ("--suites", suite, "--quick", "--probe", "timing", "--processes", "1")

    ended = harness("run", *options, "--budget", "3s", "--run-id", "it")

    assert ended.returncode == 3, ended.stderr
    assert "lost" in ended.stdout
    assert "jaxmeter run --resume results/it" in ended.stdout
    folder = tmp_path / "results" / "it"
    assert not (folder / "run.json").exists()
    stop = read_json(folder / "stopped.json", Stop)
    assert (stop.reason, stop.budget_s) == (StopReason.BUDGET_USED, 3.0)

    resumed = harness("run", "--resume", "it", "--suites", suite, "--budget", "5m")

    assert "of 300 s used" in resumed.stdout
    assert read_json(folder / "run.json", RunRecord).lost() == ()
    assert not (folder / "stopped.json").exists()


EDITING = '''"""Edits itself when it is measured, not when it is listed."""

import pathlib

import jax.numpy as jnp

from jaxmeter import workload


def edit(x):
    path = pathlib.Path(__file__)
    path.write_text(path.read_text().replace("x + 1  #", "x + 1 + 0  #"))
    return x + 1


@workload(inputs=lambda key: jnp.ones(3), reference=edit, modes=("jit",))
def increment(x):
    """Adds one, (n,) -> (n,)."""
    return x + 1  # the line that changes
'''


@pytest.mark.slow
def test_a_run_measures_the_suites_as_they_were_when_it_began(harness, tmp_path):
    (tmp_path / "editing.py").write_text(EDITING)

    ended = harness(
        "run", "--suites", "editing.py", "--quick", "--probe", "timing", "--processes", "3", "--run-id", "it"
    )

    assert ended.returncode == 0, ended.stdout
    assert "x + 1 + 0  #" in (tmp_path / "editing.py").read_text()


def test_a_suite_edited_while_the_run_goes_on_is_not_measured_as_if_it_were_the_same(harness, tmp_path):
    begins_threads = "ONE = jnp.float32(1) + 0  # so that every process imports it again"
    (tmp_path / "editing.py").write_text(EDITING.replace("def edit", begins_threads + "\n\n\ndef edit"))

    ended = harness("run", "--suites", "editing.py", "--quick", "--processes", "3", "--run-id", "it")

    assert ended.returncode == 3
    assert "was edited while the run went on; start a new run" in ended.stdout
    why = "importing them begins threads, as making an array does; "
    assert ended.stderr.count(f"warning: every process imports the suites itself: {why}") == 1
    (note,) = read_manifest(RunFolder(tmp_path / "results" / "it")).settings.notes
    assert note.startswith(f"every process imported the suites itself: {why}")
