"""What somebody removes or moves while a run goes on, or a run that was killed before its manifest, has a way on."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.record import Run, RunFolder, read_json, read_manifest
from tests.end_to_end.conftest import Harness

pytestmark = pytest.mark.end_to_end

ARGUMENTS = ("--quick", "--probe", "compilation", "--run-id", "it")
Start = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture
def start(suite: Path, tmp_path: Path, environment: dict[str, str]) -> Start:
    """Begins a run and returns once there is a file of this name in its folder."""

    def until(name: str) -> subprocess.Popen[str]:
        running = subprocess.Popen(
            [sys.executable, "-m", "harness", "run", "--suites", str(suite), *ARGUMENTS],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        while not list((tmp_path / "results").glob(f"it/{name}")):
            assert running.poll() is None
            time.sleep(0.01)
        return running

    return until


def test_a_run_that_loses_its_manifest_has_it_again_at_the_end(start: Start, tmp_path: Path) -> None:
    running = start("manifest.json")
    (tmp_path / "results" / "it" / "manifest.json").unlink()

    said, _ = running.communicate(timeout=120)

    folder = RunFolder(tmp_path / "results" / "it")
    assert running.returncode == 0, said
    assert read_manifest(folder) == read_json(folder.mark, Run).manifest


def test_a_run_whose_folder_is_moved_is_not_taken_for_a_whole_one(start: Start, tmp_path: Path) -> None:
    running = start("manifest.json")
    (tmp_path / "results" / "it").rename(tmp_path / "results" / "moved")

    said, _ = running.communicate(timeout=120)

    assert running.returncode == 3, said
    assert "error: results/it was moved or removed while the run went on" in said


def test_a_run_that_was_killed_before_its_manifest_leaves_its_id_free(
    start: Start, suite: Path, tmp_path: Path, harness: Harness
) -> None:
    running = start("scratch/server0")
    running.kill()
    running.communicate(timeout=60)
    assert not (tmp_path / "results" / "it" / "manifest.json").exists()

    resumed = harness("run", "--resume", "it")
    again = harness("run", "--suites", suite, *ARGUMENTS)

    assert resumed.returncode == 2
    assert "nothing was measured in results/it; start it again with --run-id it" in resumed.stderr
    assert again.returncode == 0, again.stderr
    assert read_json(tmp_path / "results" / "it" / "run.json", Run).lost() == ()
