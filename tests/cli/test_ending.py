"""Programs that end by themselves, or that cannot: in processes of their own, since they exit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.end_to_end

CHECKOUT = Path(__file__).parents[2]
BEGIN = "import signal, sys; from jaxmeter.cli.ending import end_program, raise_interruptions; "


def end(program: str, *, before: str = "", **streams: object) -> subprocess.CompletedProcess[str]:
    """Ends a program that is a lambda's body, after another statement."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    command = [sys.executable, "-c", f"{BEGIN}{before}\nend_program(lambda: {program})"]
    return subprocess.run(command, cwd=CHECKOUT, text=True, check=False, **options)


def lack(name: str) -> str:
    return f"(_ for _ in ()).throw(ModuleNotFoundError(name='{name}'))"


@pytest.mark.parametrize(
    ("program", "code", "said"),
    [
        ("sys.exit(1)", 1, ""),  # its own choice
        ("1 / 0", 3, "ZeroDivisionError: division by zero\nerror: this is a fault of jaxmeter\n"),
        (lack("jinja2.sandbox"), 2, "error: jinja2 is not installed: pip install 'jaxmeter[report]'\n"),
        (lack("flax"), 2, "error: flax is not installed: pip install 'jaxmeter[suites]'\n"),
        (lack("xprof"), 2, "error: xprof is not installed: pip install 'jaxmeter[viewer]'\n"),
        ("__import__('jaxmeter.gone')", 3, "error: this is a fault of jaxmeter\n"),  # no extra brings it
        ("open('/proc/none\\x1b')", 3, "error: /proc/none\\x1b cannot be used: No such file or directory\n"),
    ],
)
def test_a_program_ends_with_the_code_of_what_ended_it_and_says_what_to_do(program, code, said):
    ended = end(program)

    assert ended.returncode == code
    assert ended.stderr.endswith(said)
    assert ("Traceback" in ended.stderr) is ("fault" in said)


@pytest.mark.skipif(sys.platform != "linux", reason="only there is a device that is always full")
@pytest.mark.parametrize("printed", ["print('x')", "(print('x', flush=True), sys.exit(0))"])
def test_an_output_that_is_full_is_told_and_ends_with_3(printed):
    with Path("/dev/full").open("w") as full:
        told, silent = end(printed, stdout=full), end(printed, stdout=full, stderr=full)

    assert told.returncode == 3
    assert told.stderr == "error: the output cannot be printed: No space left on device\n"
    assert silent.returncode == 3


@pytest.mark.parametrize(
    "printed",
    [
        "print('x')",
        "__import__('rich').print('x')",
        "__import__('typer').run(lambda: __import__('typer').echo('x'))",
    ],
    ids=["plain", "Rich", "Typer"],
)
def test_an_output_that_nobody_reads_ends_quietly_whatever_prints_it(printed):
    program = f"{BEGIN}sys.argv = ['x']; sys.stdin.read(); end_program(lambda: {printed})"
    pipe = subprocess.PIPE
    running = subprocess.Popen([sys.executable, "-c", program], cwd=CHECKOUT, stdin=pipe, stdout=pipe, stderr=pipe)
    running.stdout.close()
    running.stdin.close()

    said = running.stderr.read().decode()
    running.stderr.close()

    assert running.wait(60) == 141
    assert said == ""


@pytest.mark.parametrize("verb", ["", "limits"])
def test_a_verb_whose_output_is_cut_short_ends_quietly(verb):
    command = f"exec 3>&1; {sys.executable} -m jaxmeter {verb} --help 2>&3 | true; echo ${{PIPESTATUS[0]}}"

    ended = subprocess.run(["bash", "-c", command], cwd=CHECKOUT, capture_output=True, text=True, check=False)

    assert ended.stdout == "141\n"


def test_a_pipe_that_breaks_elsewhere_is_no_output_that_was_cut_short():
    ended = end("(os.close(ends[0]), os.write(ends[1], b'x'))", before="import os; ends = os.pipe()")

    assert ended.returncode == 3
    assert ended.stderr.endswith("error: this is a fault of jaxmeter: Broken pipe\n")


@pytest.mark.parametrize(
    ("before", "within"),
    [("SIG_DFL", "default_int_handler"), ("default_int_handler", "default_int_handler"), ("SIG_IGN", "SIG_IGN")],
)
def test_an_interruption_is_an_exception_for_the_program_unless_it_is_ignored(before, within):
    program = f"print(signal.getsignal(signal.SIGINT) is signal.{within})"

    assert (
        end(program, before=f"signal.signal(signal.SIGINT, signal.{before}); raise_interruptions()").stdout == "True\n"
    )
