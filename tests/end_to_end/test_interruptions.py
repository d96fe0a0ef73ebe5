"""Whatever ends a run, what was measured is kept, nothing is left running, and --resume finishes it."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import pytest

from jaxmeter.harness.parent.prepare_run import PREFIX
from jaxmeter.harness.record import CaseRecord, RunFolder, RunRecord, Stop, StopReason, read_json, read_manifest
from tests.end_to_end.conftest import Harness, start_program, wait_for_file

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow]

ARGUMENTS = ("--quick", "--processes", "3", "--probe", "timing", "--probe", "compilation", "--run-id", "it")


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


def check_resumed(harness: Harness, suite: Path, folder: Path) -> None:
    kept = {path: path.read_bytes() for path in folder.glob("cases/*/processes/*.json.gz")}
    resumed = harness("run", "--resume", "it", "--suites", suite)
    assert resumed.returncode == 0, resumed.stderr
    assert {path: path.read_bytes() for path in kept} == kept
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
def test_an_interrupted_run_says_what_it_kept_and_is_finished_by_resume(number, suite, tmp_path, harness):
    folder = tmp_path / "results" / "it"
    running = start_program(tmp_path, "run", "--suites", suite, *ARGUMENTS)
    wait_for_file(running, folder, "cases/*/processes/*-timing.json.gz")

    running.send_signal(number)
    said = running.communicate(timeout=60)[0]

    assert running.returncode == 130
    assert "what was measured is kept (" in said
    assert "jaxmeter run --resume results/it" in said
    assert_nothing_runs(tmp_path)
    assert read_json(folder / "stopped.json", Stop).reason is StopReason.INTERRUPTED
    check_resumed(harness, suite, folder)


@pytest.mark.parametrize("seed", range(3))
def test_a_run_killed_at_any_moment_leaves_nothing_running_and_is_finished_by_resume(seed, suite, tmp_path, harness):
    folder = tmp_path / "results" / "it"
    running = start_program(tmp_path, "run", "--suites", suite, *ARGUMENTS)
    wait_for_file(running, folder, "manifest.json")
    time.sleep(random.Random(seed).uniform(0.0, 6.0))

    running.kill()
    running.communicate(timeout=60)

    assert_nothing_runs(tmp_path)
    read_manifest(RunFolder(folder))
    check_resumed(harness, suite, folder)
