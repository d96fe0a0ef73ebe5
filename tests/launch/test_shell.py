"""Programs of jaxmeter in this environment and in others."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from jaxmeter.launch import shell as launch_shell
from jaxmeter.launch.options import UsageError
from jaxmeter.launch.shell import (
    PACKAGE,
    ProgramError,
    Shell,
    find_checkout,
    link_package,
    list_needed,
    prepare_stores,
    run_jaxmeter,
)
from tests.end_to_end.conftest import wait_for_file

VARIABLES = {"PATH": os.environ["PATH"], "HOME": "/home/me"}


@pytest.fixture
def here():
    return Shell((), VARIABLES)


@pytest.fixture
def installed(monkeypatch):
    """jaxmeter as an installed package, without the files of a checkout."""
    monkeypatch.setattr(launch_shell, "is_checkout", lambda: False)


def test_programs_run_in_the_environment_of_this_process_and_their_codes_are_those_of_a_shell(here):
    assert here.run("python", "-c", f"import sys; sys.exit(sys.executable != {sys.executable!r})") == 0
    assert here.run("python", "-c", "import sys; sys.exit(7)") == 7
    assert here.run("python", "-c", "import os; os.kill(os.getpid(), 9)") == 137
    with pytest.raises(KeyboardInterrupt):
        here.run("python", "-c", "import sys; sys.exit(130)")
    with pytest.raises(ProgramError) as raised:  # while its output is needed
        here.ask("python", "-c", "import sys; sys.exit(2)")
    assert raised.value.code == 2


def test_a_program_has_the_variables_that_were_set_and_measures_where_it_is(here):
    shell = Shell(("--runtime", "here"), {**VARIABLES, "JAXMETER_RUNTIME": "auto"})
    shell.set_variable("JAXMETER_FINISH", "again")

    code = "import os; print(os.environ['JAXMETER_FINISH'], os.environ.get('JAXMETER_RUNTIME'))"

    assert shell.ask("python", "-c", code) == "again None\n"


def test_nothing_is_installed_where_this_environment_measures(here):
    here.install("gpu")

    assert here.ask("python", "-c", "import sys; print(sys.executable)").strip() == sys.executable
    assert prepare_stores(here) == launch_shell.Path(sys.executable)


def test_another_python_finds_this_package_and_no_other_name(here, tmp_path, monkeypatch):
    monkeypatch.setattr(Shell, "environments", tmp_path)
    other = tmp_path / "python"
    other.symlink_to(os.path.realpath(sys.executable))
    code = "import jaxmeter, os, sys; print(jaxmeter.__file__, os.listdir(sys.path[1]))"

    file, names = here.ask(str(other), "-c", code).split(maxsplit=1)

    assert os.path.realpath(file) == str(PACKAGE / "__init__.py")
    assert names.strip() == "['jaxmeter']"
    assert link_package(tmp_path) == link_package(tmp_path)


def test_environments_of_an_installed_package_are_in_the_users_cache(installed, tmp_path):
    assert str(Shell((), {"XDG_CACHE_HOME": "/cache"}).environments) == "/cache/jaxmeter/environments"
    assert Shell((), {}).environments.parts[-3:] == (".cache", "jaxmeter", "environments")


def test_what_needs_a_checkout_says_so(installed):
    for runtime in ("auto", "local", "container"):
        with pytest.raises(UsageError, match=f"--runtime {runtime} needs a checkout of jaxmeter.*or leave it out"):
            Shell(("--runtime", runtime), VARIABLES)
    with pytest.raises(UsageError, match="a schedule needs"):
        find_checkout("a schedule")


def test_other_environments_get_what_measuring_needs_and_what_is_measured_decides_on_jax(request, monkeypatch):
    assert list_needed() == ("numpy", "msgspec", "rich", "typer", "packaging", "flatbuffers", "flax", "optax")
    declared = ["jax>=0.10", "numpy", "s3fs; extra == 's3'", "msgspec>=1; python_version >= '3'"]
    declared += ["flax; extra == 'suites'", "pandas; extra == 'report'"]
    request.getfixturevalue("installed")
    monkeypatch.setattr(launch_shell.metadata, "requires", lambda name: declared)
    assert list_needed() == ("numpy", "msgspec", "flax")


PATIENT = """
import pathlib, sys, time
from jaxmeter.cli.measuring import run_command

def measure():
    try:
        pathlib.Path(sys.argv[1], "started").touch()
        time.sleep(60)
    finally:
        time.sleep(0.5)  # a second interrupt would end this
        pathlib.Path(sys.argv[1], "kept").touch()

sys.exit(run_command(measure))
"""
"""Keeps what it measured if it is interrupted once."""

CALLER = """
import os, sys
from jaxmeter.launch.shell import Shell

try:
    Shell((), os.environ).run(*sys.argv[1:])
    open(sys.argv[-1] + "/next-step", "w").close()
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    ("number", "to_group", "is_nested"),
    [
        (signal.SIGTERM, False, True),
        (signal.SIGTERM, True, True),
        (signal.SIGINT, False, False),
        (signal.SIGINT, True, True),
    ],
)
def test_an_interrupted_program_keeps_what_it_has_and_no_next_step_begins(tmp_path, number, to_group, is_nested):
    nested = ("python", "-c", CALLER) if is_nested else ()
    words = [sys.executable, "-c", CALLER, *nested, "python", "-c", PATIENT, str(tmp_path)]
    caller = subprocess.Popen(words, start_new_session=True, stderr=subprocess.PIPE, text=True)
    wait_for_file(caller, tmp_path, "started")

    (os.killpg if to_group else os.kill)(caller.pid, number)  # Ctrl-C of a terminal, or a scheduler, reaches all
    _, errors = caller.communicate(timeout=30)
    assert {path.name for path in tmp_path.iterdir()} == {"started", "kept"}, errors
    assert caller.returncode == 130


def test_no_folder_where_the_user_works_takes_a_librarys_place(here, tmp_path, monkeypatch):
    (tmp_path / "typer.py").write_text("raise SystemExit(5)")
    monkeypatch.chdir(tmp_path)

    assert run_jaxmeter(here, "--version") == 0


def test_a_program_may_be_called_from_any_thread(here):
    codes = []
    thread = threading.Thread(target=lambda: codes.append(here.run("python", "-c", "")))
    thread.start()
    thread.join(timeout=30)

    assert codes == [0]
