"""Whatever ends a run, what was measured is kept, nothing is left running, and --resume finishes it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jaxmeter.harness.parent.scratch import PREFIX
from jaxmeter.harness.record import CaseRecord, RunFolder, RunRecord, Stop, StopReason, read_json, read_manifest
from tests.end_to_end.conftest import Harness

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow]

ARGUMENTS = ("--quick", "--processes", "3", "--probe", "timing", "--probe", "compilation", "--run-id", "it")


def start(suite: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "jaxmeter", "run", "--suites", str(suite), *ARGUMENTS]
    return subprocess.Popen(
        command, cwd=suite.parent, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def wait_until_it_measures(folder: Path) -> None:
    for _ in range(600):
        if list(folder.glob("cases/*/processes/*-timing.json.gz")):
            return
        time.sleep(0.05)
    raise AssertionError("no process was written within 30 s")


def processes_in(folder: Path) -> dict[int, str]:
    """Command lines of the processes that work in a folder: parent, fork server and child."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").resolve() == folder:
                found[int(process.name)] = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (OSError, ProcessLookupError):
            continue
    return found


def assert_nothing_runs(folder: Path) -> None:
    for _ in range(100):
        if not (left := processes_in(folder)):
            return
        time.sleep(0.05)
    raise AssertionError(f"still running: {left}")


def kept_processes(folder: Path) -> dict[str, bytes]:
    """What every process has left."""
    return {str(path): path.read_bytes() for path in folder.glob("cases/*/processes/*.json.gz")}


def assert_finished(folder: Path) -> None:
    run = read_json(folder / "run.json", RunRecord)
    assert run.lost() == ()
    assert {case.status.value for case in run.cases} == {"ok"}
    assert not list(folder.parent.glob(f"{PREFIX}*"))
    assert not (folder / "stopped.json").exists()
    for case in run.cases:
        assert read_json(folder / "cases" / case.id / "case.json", CaseRecord) == case
        own = RunFolder(folder).case(case.id)
        assert len(own.processes("timing")) == 3
        assert len(own.processes("compilation")) == 3 * len(case.variants)
        assert case.files == len(own.processes())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_says_what_it_kept_and_is_finished_by_resume(number, suite, tmp_path, environment, harness):
    folder = tmp_path / "results" / "it"
    running = start(suite, environment)
    wait_until_it_measures(folder)

    running.send_signal(number)
    said = running.communicate(timeout=60)[0].decode()

    assert running.returncode == 130
    assert "what was measured is kept (" in said
    assert "jaxmeter run --resume results/it" in said
    assert_nothing_runs(tmp_path)
    assert read_json(folder / "stopped.json", Stop).reason is StopReason.INTERRUPTED
    kept = kept_processes(folder)
    resumed = harness("run", "--resume", "it", "--suites", suite)
    assert resumed.returncode == 0, resumed.stderr
    assert_finished(folder)
    assert all(Path(path).read_bytes() == data for path, data in kept.items())


@pytest.mark.parametrize("seed", range(3))
def test_a_run_killed_at_any_moment_leaves_nothing_running_and_is_finished_by_resume(seed, suite, tmp_path, environment, harness):
    folder = tmp_path / "results" / "it"
    running = start(suite, environment)
    while not (folder / "manifest.json").exists():
        assert running.poll() is None
        time.sleep(0.01)
    time.sleep(random.Random(seed).uniform(0.0, 6.0))

    running.kill()
    running.communicate(timeout=60)

    assert_nothing_runs(tmp_path)
    read_manifest(RunFolder(folder))
    kept = kept_processes(folder)
    resumed = harness("run", "--resume", "it", "--suites", suite)
    assert resumed.returncode == 0, resumed.stderr
    assert_finished(folder)
    assert all(Path(path).read_bytes() == data for path, data in kept.items())
