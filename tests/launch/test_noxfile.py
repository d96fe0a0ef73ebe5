"""The nox sessions, run by nox itself with stand-ins for the harness and the report."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jaxmeter.launch.backends import BACKENDS
from jaxmeter.launch.environments import MARK, locate_locked

CHECKOUT = Path(__file__).parents[2]

# Leaves a run where it is told to, and ends with the exit code that STAND_IN_CODE names.
HARNESS = """
import os, pathlib, sys
arguments = sys.argv[1:]
pathlib.Path("harness-arguments").write_text(" ".join(arguments))
if "--run-id" in arguments:
    run = pathlib.Path("results", arguments[arguments.index("--run-id") + 1])
    run.mkdir(parents=True)
    (run / "manifest.json").touch()
sys.exit(int(os.environ.get("STAND_IN_CODE", "0")))
"""

INTERRUPTED_HARNESS = """
import pathlib, signal, sys, time

def interrupt(number, frame):  # as the harness does
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt

signal.signal(signal.SIGTERM, interrupt)
signal.signal(signal.SIGINT, interrupt)
try:
    pathlib.Path("measuring").touch()
    time.sleep(60)
except KeyboardInterrupt:
    time.sleep(1)  # longer than the grace that nox gives by default
    pathlib.Path("kept").touch()
    sys.exit(130)
"""

REPORTING = """
import os, pathlib, sys
pathlib.Path("report-arguments").write_text(" ".join(sys.argv[1:]))
sys.exit(int(os.environ.get("STAND_IN_REPORT_CODE", "0")))
"""

STAND_IN = """
import pathlib, runpy, sys
folder, words = pathlib.Path(sys.argv[0]).parent, sys.argv[4:]  # after -P -m jaxmeter
part = "harness" if words[0] in ("run", "self-test") else "reporting"
sys.argv = [part, *words]
runpy.run_path(folder / f"{part}.py", run_name="__main__")
"""

COPIED = ("__init__.py", "__main__.py", "version.py", "cli", "launch", "harness/__init__.py", "harness/record")


def make_environment(checkout, lock):
    """An environment of a lock, whose python runs the stand-ins."""
    place = locate_locked(checkout / "docker" / "locks" / f"{lock}.txt", checkout / ".nox" / "environments")
    (place / "bin").mkdir(parents=True)
    (place / MARK).write_text("0")
    python = place / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} {checkout}/stand_in.py "$@"\n')
    python.chmod(0o755)


@pytest.fixture
def checkout(tmp_path):
    """A checkout of the command line, in which the environments of locks have stand-ins for all that they run."""
    for name in COPIED:
        source, target = CHECKOUT / "jaxmeter" / name, tmp_path / "jaxmeter" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    shutil.copytree(CHECKOUT / "tests" / "tools", tmp_path / "tests" / "tools")
    for name in ("noxfile.py", "pyproject.toml"):
        shutil.copy(CHECKOUT / name, tmp_path)
    (tmp_path / "docker" / "locks").mkdir(parents=True)
    (tmp_path / "docker" / "Dockerfile").touch()
    (tmp_path / "docker" / "locks" / "cpu.txt").touch()
    make_environment(tmp_path, "cpu")
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    (tmp_path / "harness.py").write_text(HARNESS)
    (tmp_path / "reporting.py").write_text(REPORTING)
    return tmp_path


def start_nox(checkout, *arguments, **environment):
    # No environment of nox' own: the stand-ins need none, and python must be the one that runs this test.
    # Nothing else is on the path: an engine of this machine would run the harness in a container.
    path = str(Path(sys.executable).parent)
    return subprocess.Popen(
        [sys.executable, "-m", "nox", "--no-venv", "--no-install", "--session", *arguments],
        cwd=checkout,
        env={**os.environ, "PATH": path, **environment},
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run_nox(checkout, *arguments, **environment):
    nox = start_nox(checkout, *arguments, **environment)
    output, _ = nox.communicate(timeout=60)
    return nox.returncode, output


def wait_for(path):
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline, f"{path.name} never came"
        time.sleep(0.05)


@pytest.mark.end_to_end
@pytest.mark.parametrize(("code", "report_code"), [(3, 0), (0, 2)])
def test_the_run_that_the_harness_wrote_is_reported_and_nox_ends_with_the_code_of_the_harness_or_the_report(
    checkout, code, report_code
):
    codes = {"STAND_IN_CODE": str(code), "STAND_IN_REPORT_CODE": str(report_code)}

    returned, output = run_nox(checkout, "cpu", "--", "--runtime", "local", "--select", "selu*", **codes)

    assert returned == (code or report_code), output
    (run,) = (checkout / "results").iterdir()
    assert (checkout / "harness-arguments").read_text() == f"run --backend cpu --select selu* --run-id {run.name}"
    assert (checkout / "report-arguments").read_text() == f"report results/{run.name}"


@pytest.mark.end_to_end
def test_a_machine_that_lacks_something_says_so_before_anything_is_measured(checkout):
    returned, output = run_nox(checkout, "cpu", "--", "--runtime", "container")

    assert returned == 2
    assert "error: no container engine is installed" in output
    assert not (checkout / "harness-arguments").exists()


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    ("session", "words", "called"),
    [
        ("report", ("diff", "a", "b"), "diff a b"),
        ("report", ("results/it",), "report results/it"),
        ("traces", ("results/it",), "trace --open results/it"),
        ("self-test", ("--runtime", "local", "--machine", "lab 3"), "self-test --backend cpu --machine lab 3"),
    ],
)
def test_a_session_calls_the_verb_of_its_name_and_the_report_any_other(checkout, session, words, called):
    returned, output = run_nox(checkout, session, "--", *words, STAND_IN_CODE="2", STAND_IN_REPORT_CODE="2")

    assert returned == 2, output
    assert [path.read_text() for path in checkout.glob("*-arguments")] == [called]


@pytest.mark.end_to_end
def test_a_schedule_is_printed_alone_and_calls_the_nox_that_wrote_it(checkout):
    words = ("slurm", "--store", "s3://team-bucket/nightly", "--machine", "lab")
    nox = [sys.executable, "-m", "nox", "--no-venv", "--no-install", "--session", "schedule", "--", *words]

    printed = subprocess.run(nox, cwd=checkout, capture_output=True, text=True, timeout=60, check=False)

    assert printed.returncode == 0, printed.stderr
    assert printed.stdout.startswith("#!/usr/bin/env bash\n")
    nox = f"{sys.executable} -m nox --noxfile {checkout}/noxfile.py --session nightly -- --store"
    assert f"{nox} s3://team-bucket/nightly" in printed.stdout


@pytest.mark.end_to_end
@pytest.mark.parametrize("is_alone", [False, True], ids=["a terminal", "systemd"])
def test_an_interrupted_harness_has_time_to_keep_what_it_measured_and_nox_ends_with_130(checkout, is_alone):
    (checkout / "harness.py").write_text(INTERRUPTED_HARNESS)
    if is_alone:
        noxfile = checkout / "noxfile.py"
        noxfile.write_text(noxfile.read_text("utf8").replace("INTERRUPT_TIMEOUT_S = 40", "INTERRUPT_TIMEOUT_S = 1", 1))
    nox = start_nox(checkout, "cpu")
    wait_for(checkout / "measuring")

    (os.kill if is_alone else os.killpg)(nox.pid, signal.SIGINT)  # Ctrl-C reaches everyone in the group
    output, _ = nox.communicate(timeout=60)

    assert nox.returncode == 130, output
    assert (checkout / "kept").exists()
    assert not (checkout / "report-arguments").exists()


@pytest.mark.end_to_end
def test_a_command_line_that_cannot_be_installed_is_no_regression(checkout):
    (checkout / "docker" / "locks" / "launch.txt").write_text("no-such-package==1.0 --hash=sha256:00\n")
    nox = [sys.executable, "-m", "nox", "--session", "doctor"]
    variables = {**os.environ, "PIP_NO_INDEX": "1"}

    ended = subprocess.run(nox, cwd=checkout, env=variables, capture_output=True, text=True, timeout=120, check=False)

    assert ended.returncode == 3, ended.stdout + ended.stderr


@pytest.mark.end_to_end
def test_every_backend_has_a_session_that_measures_on_it(checkout):
    command = [sys.executable, "-m", "nox", "--list"]
    listed = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=True)

    assert {
        f"- {name} -> Measure on {needs.devices.name}, then report: nox -s {name} -- --quick."
        for name, needs in BACKENDS.items()
    } <= set(listed.stdout.splitlines())
