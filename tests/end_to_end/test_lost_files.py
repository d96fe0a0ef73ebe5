"""A folder that is moved or made read-only while a run goes on: each has a way on."""

from __future__ import annotations

import pytest

from jaxmeter.harness.record import RunRecord, read_json
from tests.end_to_end.conftest import start_program, wait_for_file

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow]

ARGUMENTS = ("--quick", "--probe", "compilation", "--run-id", "it")
OBEYING_MODES = """
import ctypes, os, sys
if os.geteuid() == 0 and sys.platform == "linux":
    PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1
    ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
"""Root writes where modes forbid it, unless it gives that up."""


@pytest.fixture
def start(suite, tmp_path):
    """Begins a run and returns once there is a file of this name in its folder."""

    def until(name):
        running = start_program(tmp_path, "run", "--suites", suite, *ARGUMENTS, python=("-c", OBEYING_MODES))
        wait_for_file(running, tmp_path / "results", f"it/{name}")
        return running

    return until


def test_a_run_whose_folder_is_moved_is_not_taken_for_a_whole_one(start, tmp_path):
    running = start("manifest.json")
    (tmp_path / "results" / "it").rename(tmp_path / "results" / "moved")

    said, _ = running.communicate(timeout=120)

    assert running.returncode == 3, said
    assert "error: results/it was moved or removed while the run went on" in said


def test_a_run_whose_folder_becomes_read_only_says_what_it_kept_and_is_finished_by_resume(
    start, suite, tmp_path, harness
):
    running = start("cases/*/case.json")
    cases = tmp_path / "results" / "it" / "cases"
    folders = [cases, *(path for path in cases.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o500)

    said, _ = running.communicate(timeout=120)
    for folder in folders:
        folder.chmod(0o700)

    assert running.returncode == 3, said
    assert "cannot be read or written: Permission denied: what was measured is kept (" in said
    assert "; fix that, then continue with: jaxmeter run --resume results/it" in said
    assert "Traceback" not in said
    resumed = harness("run", "--resume", "it", "--suites", suite)
    assert resumed.returncode == 0, resumed.stderr
    assert {case.status.value for case in read_json(cases.parent / "run.json", RunRecord).cases} == {"ok"}
