"""The nox sessions, run by nox itself with a stand-in for jaxmeter's command line."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jaxmeter.launch.backends import BACKENDS
from tests.end_to_end.conftest import wait_for_file

pytestmark = pytest.mark.end_to_end

CHECKOUT = Path(__file__).parents[2]

PROGRAM = """
import os, sys
print(*sys.argv[1:], os.environ["JAXMETER_RUNTIME"], os.environ["JAXMETER_IN_NOX"] == sys.executable, sep="\\n")
sys.exit(2)
"""

INTERRUPTED = """
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


@pytest.fixture
def checkout(tmp_path):
    """A checkout with what the noxfile imports, and a stand-in for the command line."""
    for name in ("jaxmeter/launch", "jaxmeter/harness/record", "tests/tools"):
        shutil.copytree(CHECKOUT / name, tmp_path / name)
    for name in ("noxfile.py", "pyproject.toml", "jaxmeter/version.py", "jaxmeter/harness/__init__.py"):
        shutil.copy(CHECKOUT / name, tmp_path / name)
    (tmp_path / "jaxmeter" / "__init__.py").touch()
    (tmp_path / "jaxmeter" / "__main__.py").write_text(PROGRAM)
    (tmp_path / "docker" / "locks").mkdir(parents=True)
    return tmp_path


def start_nox(checkout, *arguments, **options):
    # No environment of nox' own: the stand-in needs none, and python must be the one that runs this test.
    nox = [sys.executable, "-m", "nox", "--no-venv", "--no-install", *arguments]
    variables = {name: value for name, value in os.environ.items() if name != "JAXMETER_RUNTIME"}
    variables["PATH"] = str(Path(sys.executable).parent)
    pipe = subprocess.PIPE
    return subprocess.Popen(nox, cwd=checkout, env=variables, stdout=pipe, stderr=pipe, text=True, **options)


@pytest.mark.parametrize(
    ("session", "words", "called"),
    [
        ("cpu", ["--select", "selu*"], ["run", "--backend", "cpu", "--select", "selu*"]),
        ("report", ["diff", "a", "b"], ["diff", "a", "b"]),
        ("report", ["results/it"], ["report", "results/it"]),
        ("traces", ["results/it"], ["trace", "--open", "results/it"]),
        ("self-test", ["--machine", "lab 3"], ["self-test", "--machine", "lab 3"]),
        ("schedule", ["slurm"], ["schedule", "slurm"]),
    ],
)
def test_a_session_calls_the_verb_of_its_name_and_the_report_any_other_and_ends_with_its_code(
    checkout, session, words, called
):
    nox = start_nox(checkout, "--session", session, "--", *words)

    printed, said = nox.communicate(timeout=60)

    assert nox.returncode == 2, said
    assert printed.splitlines() == [*called, "auto", "True"]  # nothing else: a schedule is printed into a file


@pytest.mark.parametrize("is_alone", [False, True], ids=["a terminal", "systemd"])
def test_an_interrupted_program_has_time_to_keep_what_it_measured_and_nox_ends_with_130(checkout, is_alone):
    (checkout / "jaxmeter" / "__main__.py").write_text(INTERRUPTED)
    if is_alone:
        noxfile = checkout / "noxfile.py"
        noxfile.write_text(noxfile.read_text("utf8").replace("INTERRUPT_TIMEOUT_S = 40", "INTERRUPT_TIMEOUT_S = 1", 1))
    nox = start_nox(checkout, "--session", "cpu", start_new_session=True)
    wait_for_file(nox, checkout, "measuring")

    (os.kill if is_alone else os.killpg)(nox.pid, signal.SIGINT)  # Ctrl-C reaches everyone in the group
    _, said = nox.communicate(timeout=60)

    assert nox.returncode == 130, said
    assert (checkout / "kept").exists()


def test_a_command_line_that_cannot_be_installed_is_no_regression(checkout):
    (checkout / "docker" / "locks" / "launch.txt").write_text("no-such-package==1.0 --hash=sha256:00\n")
    nox = [sys.executable, "-m", "nox", "--session", "doctor"]
    variables = {**os.environ, "PIP_NO_INDEX": "1"}

    ended = subprocess.run(nox, cwd=checkout, env=variables, capture_output=True, text=True, timeout=120, check=False)

    assert ended.returncode == 3, ended.stdout + ended.stderr


def test_every_backend_has_a_session_that_measures_on_it(checkout):
    printed, _ = start_nox(checkout, "--list").communicate(timeout=60)

    assert {
        f"- {name} -> Measure on {needs.devices.name}, then report: nox -s {name} -- --quick."
        for name, needs in BACKENDS.items()
    } <= set(printed.splitlines())
