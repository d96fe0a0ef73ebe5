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


@pytest.mark.parametrize("code", [0, 1, 130])
def test_a_code_that_a_program_has_chosen_is_its_own(code):
    assert end(f"sys.exit({code})").returncode == code


def test_what_nobody_foresaw_is_shown_and_ends_with_3():
    ended = end("1 / 0")

    assert ended.returncode == 3
    assert "ZeroDivisionError" in ended.stderr
    assert ended.stderr.endswith("error: this is a fault of jaxmeter\n")


@pytest.mark.parametrize(
    ("name", "extra"), [("pandas", "report"), ("jinja2.sandbox", "report"), ("flax", "suites"), ("xprof", "viewer")]
)
def test_what_an_installation_lacks_is_named_with_what_brings_it(name, extra):
    ended = end(f"(_ for _ in ()).throw(ModuleNotFoundError(name='{name}'))")

    package = name.partition(".")[0]
    assert (ended.returncode, ended.stderr) == (
        2,
        f"error: {package} is not installed: pip install 'jaxmeter[{extra}]'\n",
    )


def test_a_module_that_no_extra_brings_is_a_fault():
    ended = end("__import__('jaxmeter.gone')")

    assert ended.returncode == 3
    assert ended.stderr.endswith("error: this is a fault of jaxmeter\n")


def test_a_file_that_cannot_be_used_is_named_without_a_traceback():
    ended = end("open('/proc/none\\x1b')")

    assert ended.returncode == 3
    assert ended.stderr == "error: /proc/none\\x1b cannot be used: No such file or directory\n"


@pytest.mark.skipif(sys.platform != "linux", reason="only there is a device that is always full")
@pytest.mark.parametrize("printed", ["print('x')", "print('x', flush=True)", "(print('x'), sys.exit(0))"])
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
        "__import__('typer').echo('x')",
        "__import__('typer').run(lambda: __import__('typer').echo('x'))",
    ],
    ids=["plain", "Rich", "echo", "Typer"],
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


@pytest.mark.parametrize("verb", [[], ["list"], ["trace"], ["report"]])
def test_a_verb_whose_output_is_cut_short_ends_quietly(verb):
    command = f"exec 3>&1; {sys.executable} -m jaxmeter {' '.join(verb)} --help 2>&3 | true; echo ${{PIPESTATUS[0]}}"

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
