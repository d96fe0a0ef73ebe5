"""Ctrl-C while programs import their parts, and what it stays for everybody else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.end_to_end

CHECKOUT = Path(__file__).parents[2]

INTERRUPTED = """
import os, signal, time

try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(10)
except KeyboardInterrupt:
    raise ImportError("as NumPy does")
"""

TELLS = """
import signal
from jaxmeter import workload
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs Python, which looks for modules in a folder first."""
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{CHECKOUT}"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("verb", ["run", "report"])
def test_an_interruption_while_a_verb_is_imported_ends_it_without_words_and_never_with_1(tmp_path, verb):
    (tmp_path / "msgspec.py").write_text(INTERRUPTED)

    ended = python(tmp_path, "-X", "dev", "-m", "jaxmeter", verb, "--help")

    assert ended.returncode == -signal.SIGINT
    assert (ended.stdout, ended.stderr) == ("", "")


@pytest.mark.parametrize("arguments", [("-c", TELLS), ("-m", "other.tool", "jaxmeter")])
def test_whoever_else_imports_jaxmeter_has_its_interruptions_as_before(tmp_path, arguments):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "__init__.py").write_text(TELLS)
    (tmp_path / "other" / "tool.py").touch()

    assert python(tmp_path, *arguments).stdout == "True\n"


def test_an_interruption_that_is_ignored_stays_so(tmp_path):
    (tmp_path / "msgspec.py").write_text("import signal\nprint(signal.getsignal(signal.SIGINT))\nraise SystemExit\n")
    begin = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); os.execv(sys.executable, sys.argv[1:])"
    )

    ended = python(tmp_path, "-c", begin, sys.executable, "-m", "jaxmeter", "run", "--help")

    assert ended.stdout == f"{signal.SIG_IGN}\n"
