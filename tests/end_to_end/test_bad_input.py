"""What cannot be done is said with its value, what is allowed and what to do next; the exit code tells."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jaxmeter.harness.record import RunFolder, RunRecord, Stop, StopReason, read_json, read_manifest
from tests.end_to_end.conftest import Harness

pytestmark = pytest.mark.end_to_end


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--select", "matmull"), "no case of this level matches --select 'matmull'; nearest: 'matmul'"),
        (("--suites", "no.such.module"), "no suite module or file 'no.such.module'"),
        (("--suites", "absent.py"), "no suite module or file 'absent.py'"),
        (("--probe", "speed"), "no probe 'speed'; probes are numerics"),
        (("--backend", "npu"), "no backend 'npu'; backends are cpu, gpu, tpu"),
        (("--cores", "4096"), "--cores 4096: "),
        (("--cores", "0"), "'0' must be an integer ≥ 1, or all"),
        (("--cores", "some"), "'some' must be an integer ≥ 1, or all"),
        (("--budget", "soon"), "--budget 'soon' is not a time"),
        (("--budget", "0s"), "--budget '0s' is not between 1 s and 30 days"),
        (("--resume", "absent"), "cannot resume: results/absent/manifest.json"),
        (("--data", "absent"), "--data 'absent' is not a folder"),
        (("--run-id", "../up"), "--run-id '../up' cannot be a folder's name"),
        (("--out", "s3://bucket/runs"), "measuring writes into a folder; `jaxmeter push RUN URL` copies"),
        (("--out", "/proc/no"), "choose a writable place with --out DIR"),
        (("--run-id", "a\udcffb"), "'a?b' is not valid UTF-8; choose a name that is"),
        (("--suites", "\udcff.py"), "'?.py' is not valid UTF-8"),
        (("--out", "\udcff"), "'?' is not valid UTF-8"),
        (("--resume", "absent", "--quick"), "--resume uses the run's own settings"),
        (("--quick", "--full"), "exclude each other"),
        (("--backend", "gpu"), "looked for an NVIDIA GPU"),
        (("--backend", "tpu"), "looked for a TPU"),
    ],
)
def test_unusable_arguments_are_named_before_anything_is_measured(
    arguments: tuple[str, ...], said: str, harness: Harness, tmp_path: Path
) -> None:
    ended = harness("run", *arguments)

    assert ended.returncode == 2
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not list((tmp_path / "results").glob("*/*"))


def test_a_suite_that_fails_to_import_is_named_with_file_and_line(harness: Harness, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import jax\n\nvalue = 1 / 0\n")

    ended = harness("run", "--suites", "broken.py")

    assert ended.returncode == 2
    assert "broken.py:3: ZeroDivisionError: division by zero" in ended.stderr


def test_a_run_id_that_is_taken_is_refused_and_the_run_is_untouched(
    harness: Harness, tmp_path: Path, suite: Path
) -> None:
    folder = tmp_path / "results" / "mine"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text("precious")

    ended = harness("run", "--suites", suite, "--run-id", "mine")

    assert ended.returncode == 2
    assert "the run id 'mine' is taken" in ended.stderr
    assert (folder / "manifest.json").read_text() == "precious"


@pytest.mark.slow  # tests/harness/parent/test_fork_client.py has processes that end badly by default
def test_every_way_to_fail_is_a_status_and_the_other_variants_go_on(harness: Harness, tmp_path: Path) -> None:
    (tmp_path / "trouble.py").write_text(
        '''"""Ways to fail, from a suite that touches the backend at import."""

import os
import signal
import time

import jax.numpy as jnp

from jaxmeter import Skip, workload

ONE = jnp.ones(())


@workload(inputs=lambda key: jnp.ones(8), reference=lambda x: x + 1, modes=("jit",), time_limit_s=3)
def good(x):
    """Adds one, (n,) -> (n,)."""
    return x + ONE


@good.implementation
def raises(x):
    raise ValueError("</script>\\x1b[31m")


@good.implementation
def wrong(x):
    return x + 2


@good.implementation(modes=("eager",))
def hangs(x):
    time.sleep(600)


@good.implementation(modes=("eager",))
def crashes(x):
    os.kill(os.getpid(), signal.SIGSEGV)


@good.implementation(modes=("eager",))
def is_killed(x):
    os.kill(os.getpid(), signal.SIGKILL)


@good.implementation(modes=("eager",))
def exits(x):
    os._exit(7)


@good.implementation(limit=lambda: Skip("not today"))
def not_wanted(x):
    return x + 1


@good.implementation(modes=("eager",))
def needs_too_much(x):
    return x + jnp.ones(1 << 42)[0]
'''
    )

    ended = harness("run", "--suites", "trouble.py", "--quick", "--processes", "3", "--run-id", "it", "--json")

    assert ended.returncode == 3
    assert json.loads(ended.stdout)["exit_code"] == 3
    run = read_json(tmp_path / "results" / "it" / "run.json", RunRecord)
    alone = "importing them begins threads, as making an array does; make arrays in functions, such as inputs()"
    assert (
        ended.stderr.count(
            f"warning: every process imports the suites itself: {alone}; each process therefore starts later"
        )
        == 1
    )
    assert run.manifest.settings.notes == (f"every process imported the suites itself: {alone}",)
    (case,) = run.cases
    numerics = {variant.name: variant.outcomes["numerics"] for variant in case.variants}
    assert {name: outcome.status.value for name, outcome in numerics.items()} == {
        "good:jit": "ok",
        "raises:jit": "failed",
        "wrong:jit": "wrong",
        "hangs:eager": "timed out",
        "crashes:eager": "killed",
        "is_killed:eager": "killed",
        "exits:eager": "failed",
        "not_wanted:jit": "skipped",
        "needs_too_much:eager": "failed",
    }
    assert "SIGSEGV" in (numerics["crashes:eager"].reason or "")
    assert "RESOURCE_EXHAUSTED" in (numerics["needs_too_much:eager"].reason or "")
    assert "ValueError" in (numerics["raises:jit"].stderr or "")
    timing = next(variant for variant in case.variants if variant.name == "good:jit").outcomes["timing"]
    assert len(timing.values["execution_s"]) == 3


@pytest.mark.slow
def test_a_budget_that_is_used_up_loses_the_rest_and_says_how_to_go_on(
    harness: Harness, suite: Path, tmp_path: Path
) -> None:
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


def test_a_budget_that_cannot_do_is_refused_before_anything_is_measured(
    harness: Harness, suite: Path, tmp_path: Path
) -> None:
    ended = harness("run", "--suites", suite, "--budget", "1s", "--run-id", "it")

    assert ended.returncode == 2
    assert "error: --budget 1s is less than one round of 3 cases takes (about " in ended.stderr
    assert "; give more, or select fewer cases" in ended.stderr
    assert not (tmp_path / "results" / "it").exists()


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
@pytest.mark.parametrize("level", ["--quick", "--full"])
def test_a_run_measures_the_suites_as_they_were_when_it_began(harness: Harness, tmp_path: Path, level: str) -> None:
    lowest = 'modes=("jit",), level="' + level.removeprefix("--") + '"'
    (tmp_path / "editing.py").write_text(EDITING.replace('modes=("jit",)', lowest))

    ended = harness("run", "--suites", "editing.py", level, "--probe", "timing", "--processes", "3", "--run-id", "it")

    assert ended.returncode == 0, ended.stdout
    assert "x + 1 + 0  #" in (tmp_path / "editing.py").read_text()


def test_a_suite_edited_while_the_run_goes_on_is_not_measured_as_if_it_were_the_same(
    harness: Harness, tmp_path: Path
) -> None:
    begins_threads = "ONE = jnp.float32(1) + 0  # so that every process imports it again"
    (tmp_path / "editing.py").write_text(EDITING.replace("def edit", begins_threads + "\n\n\ndef edit"))

    ended = harness("run", "--suites", "editing.py", "--quick", "--processes", "3", "--run-id", "it")

    assert ended.returncode == 3
    assert "was edited while the run went on; start a new run" in ended.stdout
    why = "importing them begins threads, as making an array does; "
    assert ended.stderr.count(f"warning: every process imports the suites itself: {why}") == 1
    (note,) = read_manifest(RunFolder(tmp_path / "results" / "it")).settings.notes
    assert note.startswith(f"every process imported the suites itself: {why}")


WRONG = """'''Declares what cannot be.'''

import jax.numpy as jnp

from jaxmeter import Needs, workload


@workload(inputs=lambda key: jnp.ones(2), reference=lambda x: x, OPTION)
def same(x):
    return x
"""


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("needs=Needs(devices='two')", "Expected `int`, got `str` - at `$.devices`"),
        ("time_limit_s='3'", "Expected `float | null`, got `str` - at `$.time_limit_s`"),
        ("cost=lambda: 5", "Expected `object | null`, got `int` - at `$.cost`"),
        ("limit=lambda: 1 / 0", "ZeroDivisionError: division by zero"),
        ("published=3", "TypeError: 'int' object is not iterable"),
        ("cost=3", "TypeError: 3 is not a callable object"),
    ],
)
def test_an_option_of_a_wrong_type_names_its_workload_and_measures_nothing(
    harness: Harness, tmp_path: Path, option: str, told: str
) -> None:
    (tmp_path / "wrong.py").write_text(WRONG.replace("OPTION", option))

    ended = harness("run", "--suites", "wrong.py", "--quick", "--run-id", "it")

    assert ended.returncode == 2
    assert "workload 'same'" in ended.stderr
    assert told in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "results" / "it").exists()
