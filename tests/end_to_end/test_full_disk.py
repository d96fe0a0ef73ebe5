"""A disk that is full stops the run, costs no case, and --resume goes on once there is room: on a real, small one."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jaxmeter.harness.record import RunRecord, read_json
from tests.end_to_end.conftest import start_program, wait_for_file

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow]

ROOM = "600m"

SLOW = '''"""Waits until a file is gone."""

import pathlib
import time

import jax.numpy as jnp

from jaxmeter import workload

WAIT = pathlib.Path(__file__).parent / "wait"


def inputs(key, *, n):
    while WAIT.exists():
        time.sleep(0.05)
    return jnp.arange(n, dtype="float32")


@workload(inputs=inputs, params={"n": (1, 2)}, reference=lambda x: x + 1, modes=("jit",))
def increment(x):
    """Adds one, (n,) -> (n,)."""
    return x + 1
'''


def mount(*arguments: str | Path) -> bool:
    command = ["mount", "-t", "tmpfs", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.fixture
def disk(tmp_path):
    """A small file system."""
    place = tmp_path / "disk"
    place.mkdir()
    if sys.platform != "linux" or shutil.which("mount") is None or not mount("-o", f"size={ROOM}", "tmpfs", place):
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.parametrize("left_kib", [0, 8, 32], ids="{} KiB left".format)
def test_a_full_disk_stops_the_run_and_the_same_case_is_measured_once_there_is_room(left_kib, disk, tmp_path, harness):
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "wait").touch()
    options = ("--suites", "slow.py", "--quick", "--probe", "timing", "--probe", "compilation", "--run-id", "it")
    running, folder = start_program(tmp_path, "run", *options, "--out", "disk"), disk / "it"
    # Processes before it list the suites and measure the machine's peaks.
    wait_for_file(running, disk, ".jaxmeter-scratch-*/server*/00003.message")
    used_kib = shutil.disk_usage(disk).used // 1024
    assert mount("-o", f"remount,size={used_kib + left_kib}k", "tmpfs", disk)
    (tmp_path / "wait").unlink()

    said, _ = running.communicate(timeout=120)

    assert running.returncode == 3, said
    assert "error: the disk is full (disk/" in said
    assert "; free some room, then continue with: jaxmeter run --resume disk/it --suites slow.py" in said
    assert "Traceback" not in said
    assert "failed" not in said
    assert not (folder / "run.json").exists()

    assert mount("-o", f"remount,size={ROOM}", "tmpfs", disk)
    resumed = harness("run", "--resume", "disk/it", "--suites", "slow.py")

    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    run = read_json(folder / "run.json", RunRecord)
    assert run.lost() == ()
    assert {case.status.value for case in run.cases} == {"ok"}
