"""A record runs no code: each command that takes a run is given one full of planted code.

That it installs nothing, tests/launch/test_baseline_environment.py checks.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jaxmeter.harness.traces.captures import SUFFIX, find_captures
from jaxmeter.harness.traces.serve import copy_captures
from tests.end_to_end.conftest import run_program
from tests.planted import plant, plant_lock_step

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow]

SUITE = '''"""Small."""

import jax.numpy as jnp

from jaxmeter import workload


@workload(inputs=lambda key, *, n: jnp.arange(n, dtype="float32"), params={"n": 3}, reference=lambda x: x + 1,
          modes=("jit",))
def increment(x):
    """Adds one, (n,) -> (n,)."""
    return x + 1
'''
OWN = ("--suites", "small.py", "--data", ".")
QUICK = ("--quick", "--processes", "1", "--probe", "timing", "--quiet")
CASE = "increment*"

REPORTING = {
    "report": ("report", "RUN", "--html", "page.html"),
    "report of two": ("report", "OTHER", "RUN", "--html", "page.html"),
    "export": ("export", "RUN", "--to", "csv"),
    "compare": ("compare", "OTHER", "RUN"),
    "diff": ("diff", "OTHER", "RUN", "--case", CASE),
    "history": ("history", "OTHER", "RUN"),
    "gate": ("gate", "OTHER", "RUN"),
    "push": ("push", "RUN", "STORE"),
    "gc": ("gc", "RUNS"),
    "reproduce": ("reproduce", "RUN", "--case", CASE, "--out", "bug.zip"),
    "fetch": ("fetch", "STORED"),
}
HARNESS = {
    "run --against": ("run", "--against", "RUN", *QUICK),
    "run --against, own suites": ("run", "--against", "RUN", *OWN, *QUICK),
    "run --against, its suites": ("run", "--against", "RUN", "--suites", "RUN/small.py", *QUICK),
    "run --lock-step": ("run", "--against", "RUN", *OWN, "--lock-step", sys.executable, *QUICK),
    "run --resume": ("run", "--resume", "CUT", "--quiet"),
    "run --resume, own suites": ("run", "--resume", "CUT", *OWN, "--quiet"),
    "run --resume, its suites": ("run", "--resume", "CUT", "--suites", "CUT/small.py", "--quiet"),
    "run --resume in lock-step": ("run", "--resume", "LOCK_STEP", *OWN, "--quiet"),
    "list": ("list", "--suites", "small.py"),
}


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A folder with a suite and `results/own`, a run of it."""
    folder = tmp_path_factory.mktemp("measured")
    (folder / "small.py").write_text(SUITE)
    options = ("--suites", "small.py", "--quick", "--processes", "3", "--run-id", "own", "--quiet")
    assert call(folder, "run", *options).returncode == 0
    return folder


@pytest.fixture
def folder(measured, tmp_path):
    """The same, with planted runs: whole, cut short, and cut short in lock-step."""
    here = shutil.copytree(measured, tmp_path / "here")
    results = here / "results"
    for name in ("planted", "cut", "lock_step"):
        shutil.copytree(results / "own", results / name)
    for name in ("cut", "lock_step"):
        (results / name / "run.json").unlink()
        for record in (results / name).glob("cases/*/case.json"):
            record.unlink()
        shutil.rmtree(next((results / name).glob("cases/*/processes")))
    plant_lock_step(results / "lock_step")
    for name in ("planted", "cut", "lock_step"):
        plant(results / name, tmp_path / "markers", environment=name == "planted")
    return here


def call(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `jaxmeter ARGUMENTS` in a folder to its end."""
    return run_program(folder, *arguments, JAXMETER_CACHE=str(folder / "cache"))


def name_all(folder: Path, arguments: tuple[str, ...]) -> list[str]:
    """Arguments with the paths that the words in capitals stand for."""
    results, store = folder / "results", folder / "store"
    names = {
        "RUNS": results,
        "RUN": results / "planted",
        "OTHER": results / "own",
        "CUT": results / "cut",
        "LOCK_STEP": results / "lock_step",
        "STORE": f"file://{store}",
        "STORED": f"file://{store}/planted",
    }
    heads = (word.partition("/") for word in arguments)
    return [f"{names.get(head, head)}{slash}{rest}" for head, slash, rest in heads]


def list_markers(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder.parent / "markers").iterdir())


@pytest.mark.parametrize("command", REPORTING)
def test_what_reads_a_record_runs_none_of_it(folder, command):
    if command == "fetch":
        shutil.copytree(folder / "results" / "planted", folder / "store" / "planted")

    ended = call(folder, *name_all(folder, REPORTING[command]))

    assert ended.returncode in (0, 1, 2, 3), ended.stderr
    assert "fault of jaxmeter" not in ended.stderr
    assert list_markers(folder) == []


@pytest.mark.parametrize("command", HARNESS)
def test_what_measures_by_a_record_runs_none_of_it(folder, command):
    ended = call(folder, *name_all(folder, HARNESS[command]))

    assert ended.returncode in (0, 2, 3), ended.stderr
    assert "fault of jaxmeter" not in ended.stderr
    assert list_markers(folder) == []
    assert not list((folder / "results").glob("*/dump"))


@pytest.mark.parametrize("words", [("--against", "RUN", *QUICK), ("--resume", "CUT", "--quiet")], ids=" ".join)
def test_with_suites_of_the_persons_own_such_a_run_is_measured(folder, words):
    for name in ("planted", "cut"):
        heal_but_suites(folder / "results" / name)

    ended = call(folder, "run", *name_all(folder, words), "--suites", "small.py")

    assert ended.returncode == 0, ended.stderr
    assert list_markers(folder) == []


def heal_but_suites(run: Path) -> None:
    """Takes back what else is planted in a record, so that the run can be gone on with here."""
    own = json.loads((run.parent / "own" / "manifest.json").read_text())
    for path in filter(Path.exists, (run / "manifest.json", run / "run.json")):
        record = json.loads(path.read_text())
        manifest = record.get("manifest", record)
        suites = manifest["settings"]["suites"]
        manifest |= {"environments": own["environments"], "settings": {**own["settings"], "suites": suites}}
        path.write_text(json.dumps(record))


def test_captures_of_such_a_run_are_copied_and_nothing_of_it_runs(folder, tmp_path):
    (run,) = name_all(folder, ("RUN",))

    copied = copy_captures(find_captures(Path(run)).captures, tmp_path / "copied")

    assert copied > 0
    assert len(list((tmp_path / "copied").rglob(f"*{SUFFIX}"))) == copied
    assert list_markers(folder) == []
