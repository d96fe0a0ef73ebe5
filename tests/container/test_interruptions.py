"""Whatever ends the launcher, no container outlives it, and what was measured is kept."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from jaxmeter.harness.record import CaseRecord, RunRecord, read_json
from jaxmeter.launch.engines import ENGINE_VARIABLE, Engine
from tests.container.conftest import containers
from tests.container.launch import CHECKOUT
from tests.end_to_end.conftest import wait_for_file

pytestmark = pytest.mark.container

ARGUMENTS = ("--quick", "--processes", "3", "--probe", "timing", "--probe", "compilation")


def start(engine: Engine, *arguments: str) -> subprocess.Popen[bytes]:
    """The launcher, as a process in the working folder."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.container.launch", *arguments],
        env={**os.environ, ENGINE_VARIABLE: engine.client, "PYTHONPATH": str(CHECKOUT)},
        stdin=subprocess.DEVNULL,
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder, which belongs to whoever runs the tests: a process cannot be somebody else."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_no_container_and_is_finished_by_resume(number, each_engine, image, folder, suite):
    image(each_engine, "cpu")
    run_folder = folder / "results" / "stopped"
    running = start(each_engine, *ARGUMENTS, "--suites", suite.name, "--run-id", "stopped")
    wait_for_file(running, run_folder, "cases/*/case.json")

    running.send_signal(number)

    assert running.wait(timeout=60) == 130
    assert not [name for name in containers(each_engine) if name.startswith("jaxmeter-")]
    kept = {path: path.read_bytes() for path in run_folder.glob("cases/*/processes/*.json.gz")}
    assert kept
    assert not (run_folder / "run.json").exists()

    assert start(each_engine, "--resume", "stopped", "--suites", suite.name).wait(timeout=120) == 0
    assert {path: path.read_bytes() for path in kept} == kept
    run = read_json(run_folder / "run.json", RunRecord)
    assert run.lost() == ()
    for case in run.cases:
        assert read_json(run_folder / "cases" / case.id / "case.json", CaseRecord) == case
    assert (folder / "reports" / "report-stopped.html").is_file()


def test_a_second_interrupt_ends_it_at_once_and_still_leaves_no_container(engine, image, folder, suite):
    image(engine, "cpu")
    # Deaf to the first interrupt, as a program inside a long call into a library is.
    deaf = suite.read_text(encoding="utf8") + "\nimport signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    suite.write_text(
        deaf.replace("return x + 1\n", "import time; time.sleep(100)\n    return x + 1\n"), encoding="utf8"
    )
    running = start(engine, *ARGUMENTS, "--suites", suite.name, "--run-id", "deaf")
    wait_for_file(running, folder / "results" / "deaf", "manifest.json")
    began = time.monotonic()

    running.send_signal(signal.SIGINT)
    time.sleep(1)
    running.send_signal(signal.SIGINT)

    assert running.wait(timeout=60) == 130
    assert time.monotonic() - began < 30  # without the second one it takes 100 s
    assert not [name for name in containers(engine) if name.startswith("jaxmeter-")]
