"""Programs of `jaxmeter` in an environment: of this process, of a lock, or of packages that a user names."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import threading
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from jaxmeter.launch.environments import (
    DECIDED_BY_WORDS,
    Wanted,
    describe_disk,
    is_made,
    make_environment,
    make_locked_environment,
)
from jaxmeter.launch.execution import say, termination_as_interrupt
from jaxmeter.launch.images import STORES_LOCK, locate_lock
from jaxmeter.launch.options import UsageError, read_options
from jaxmeter.launch.request import HERE, RUNTIME_VARIABLE, choose_runtime

FINE, USAGE_ERROR, INTERRUPTED = 0, 2, 130
NO_ANSWER = 3
"""Of the harness, too, whose run is not complete then."""

ENV = "/usr/bin/env"
"""Sets variables and becomes the program."""

PACKAGE = Path(__file__).resolve().parents[1]
PROJECT = PACKAGE.parent / "pyproject.toml"

OF_SUITES = {"extra": "suites"}

KEPT_IN_S = 30
"""After SIGTERM a program ends the call in progress, writes the case and removes its processes or its container, which
takes up to 20 s."""

JAXMETER = ("-P", "-m", "jaxmeter")
"""Arguments of a Python that runs jaxmeter. With -P, no folder where the user works takes a library's place."""


class ProgramError(Exception):
    """A program has failed whose output was needed; it has said why itself.

    Args:
      code: Its exit code.
    """

    def __init__(self, code: int) -> None:
        super().__init__(f"a program ended with {code}")
        self.code = code


class Shell:
    """An environment and the programs that run in it.

    Args:
      arguments: Of the verb, which may name a runtime.
      variables: The user's environment variables.
    Raises:
      UsageError: The runtime needs a checkout of jaxmeter, and this is an installed package.
    """

    def __init__(self, arguments: Sequence[str], variables: Mapping[str, str]) -> None:
        self.variables = variables
        self.runtime = choose_runtime(read_options(arguments, "--runtime").get("--runtime"), variables)
        self._python = sys.executable
        self._set: dict[str, str] = {}
        if self.runtime != HERE:
            find_checkout(f"--runtime {self.runtime}", "; or leave it out, and this environment measures")

    @property
    def checkout(self) -> Path:
        """Where jaxmeter's own files are: the folder of its package, which in a checkout has docker/ too."""
        return PACKAGE.parent

    @property
    def environments(self) -> Path:
        """Folder of all environments that are made: of a checkout its own, else in the user's cache."""
        if is_checkout():
            return self.checkout / ".nox" / "environments"
        cache = self.variables.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        return Path(cache, "jaxmeter", "environments")

    def install(self, lock: str) -> None:
        """Have what follows run in an environment of a lock; in that of this process if it measures here.

        Raises:
          UsageError: pip cannot install it.
        """
        if self.runtime != HERE:
            self._python = str(make_locked_environment(self.checkout / locate_lock(lock), self.environments))

    def set_variable(self, name: str, value: str) -> None:
        """Set a variable of the programs that follow."""
        self._set[name] = value

    def run(self, *command: str) -> int:
        """Return the exit code of a command: `python` is the environment's, all else is called by its path.

        Raises:
          KeyboardInterrupt: It was interrupted, or this process; it had time to keep what it measured.
        """
        with termination_as_interrupt():
            process = subprocess.Popen(self._complete(command), env=self._make_variables(command))
            try:
                code = _read_code(process.wait())
            except KeyboardInterrupt:
                _end(process)
                raise
            finally:
                if process.poll() is None:
                    process.kill()
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        return code

    def ask(self, *command: str) -> str:
        """Return what a command prints on its stdout.

        Raises:
          ProgramError: It has failed.
        """
        ended = subprocess.run(
            self._complete(command),
            env=self._make_variables(command),
            stdout=subprocess.PIPE,
            text=True,
            errors="replace",
            check=False,
        )
        if ended.returncode != 0:
            raise ProgramError(_read_code(ended.returncode))
        return ended.stdout

    def _complete(self, command: Sequence[str]) -> list[str]:
        return [self._python if word == "python" and at == 0 else word for at, word in enumerate(command)]

    def _make_variables(self, command: Sequence[str]) -> dict[str, str]:
        """Return the variables of a command. Whatever it calls measures in its own environment."""
        variables = {**self.variables, **self._set}
        variables.pop(RUNTIME_VARIABLE, None)
        if is_checkout() or self._complete(command)[0] != sys.executable:
            own = str(link_package(self.environments))
            variables["PYTHONPATH"] = os.pathsep.join(filter(None, (own, variables.get("PYTHONPATH"))))
        return variables


def _end(process: subprocess.Popen[bytes]) -> None:
    """Forward an interrupt, and give the program time to keep what it measured.

    The program may have received the interrupt, too: Ctrl-C reaches all processes, and so do most schedulers. What
    measures ignores SIGTERM after the first signal.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    process.terminate()
    with suppress(KeyboardInterrupt, subprocess.TimeoutExpired):
        process.wait(timeout=KEPT_IN_S)


def _read_code(code: int) -> int:
    """Return an exit code as shells write it: 128 and its number for a signal."""
    return code if code >= 0 else 128 - code


def is_checkout() -> bool:
    """Return whether this jaxmeter is a checkout of its repository, which an installed package is not."""
    return (PACKAGE.parent / "docker" / "Dockerfile").is_file() and PROJECT.is_file()


def find_checkout(what: str, otherwise: str = "") -> Path:
    """Return the root of the checkout.

    Args:
      what: What needs it, to begin a sentence with.
      otherwise: What else can be done, to end the sentence with.
    Raises:
      UsageError: This is an installed package.
    """
    if not is_checkout():
        raise UsageError(f"{what} needs a checkout of jaxmeter, with its locks and docker/; clone it{otherwise}")
    return PACKAGE.parent


def link_package(environments: Path) -> Path:
    """Return a folder that holds this package and nothing else, for environments that lack it.

    Raises:
      UsageError: It cannot be written.
    """
    folder = environments / f"package-{hashlib.sha256(str(PACKAGE).encode()).hexdigest()[:16]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        link = folder / PACKAGE.name
        if not link.is_symlink():
            link.symlink_to(PACKAGE, target_is_directory=True)
    except FileExistsError:  # another process made it
        pass
    except OSError as error:
        raise UsageError(f"{folder}: cannot be written: {error.strerror}") from error
    return folder


def list_needed() -> tuple[str, ...]:
    """Return the names of the packages that measuring needs in addition to JAX, with those of jaxmeter's own suites."""
    if is_checkout():
        project = tomllib.loads(PROJECT.read_text(encoding="utf8"))["project"]
        declared = [*project["dependencies"], *project["optional-dependencies"]["suites"]]
    else:
        declared = metadata.requires("jaxmeter") or []
    required = [each for each in map(Requirement, declared) if each.marker is None or each.marker.evaluate(OF_SUITES)]
    return tuple(each.name for each in required if each.name not in DECIDED_BY_WORDS)


def run_jaxmeter(shell: Shell, *arguments: str) -> int:
    """Return the exit code of `jaxmeter ARGUMENTS` in the shell's environment."""
    return shell.run("python", *JAXMETER, *arguments)


def write_page(shell: Shell, *words: str) -> None:
    """Write the report of runs that were judged; without one, what was judged stands."""
    if run_jaxmeter(shell, "report", *words):
        say("no page was written; the verdict above is not affected")


def run_elsewhere(shell: Shell, python: Path, *arguments: str, variables: Mapping[str, str] | None = None) -> int:
    """Return the exit code of `jaxmeter ARGUMENTS` in the environment of an interpreter.

    Args:
      variables: Environment variables of this program alone.
    """
    setting = (ENV, *(f"{name}={value}" for name, value in variables.items())) if variables else ()
    return shell.run(*setting, str(python), *JAXMETER, *arguments)


def check_selection(shell: Shell, python: str, backend: str, measuring: Sequence[str]) -> None:
    """Check in an environment that the suites have what is selected; it measures nothing.

    Raises:
      ProgramError: They have not; that program has named the nearest case.
    """
    given = read_options(measuring, "--select", "--suites", flags=("--quick", "--full"))
    if "--select" in given or "--suites" in given:
        words = [word for name, values in given.values.items() for value in values for word in (name, value)]
        levels = [name for name in ("--quick", "--full") if name in given]
        shell.ask(python, *JAXMETER, "run", "--dry-run", "--json", "--backend", backend, *words, *levels)


def prepare_stores(shell: Shell) -> Path:
    """The python that reads and writes stores: in a checkout of an environment of its own, apart from what measures.

    Raises:
      UsageError: pip cannot install it.
    """
    if shell.runtime == HERE:
        return Path(sys.executable)
    return make_locked_environment(shell.checkout / locate_lock(STORES_LOCK), shell.environments)


def has_environment(shell: Shell, wanted: Wanted) -> bool:
    """Return whether an environment of these packages is there.

    Raises:
      UsageError: Its interpreter cannot be started.
    """
    return is_made(wanted, shell.environments, list_needed())


def prepare_environment(shell: Shell, wanted: Wanted) -> Path:
    """The python of an environment with these packages.

    Raises:
      UsageError: pip cannot install them.
    """
    if not has_environment(shell, wanted):
        say(f"installing {wanted.words}; this takes a minute or two, once")
    return make_environment(wanted, shell.environments, list_needed())


def say_disk(shell: Shell) -> None:
    """Say how much disk all environments take, and how to remove them."""
    say(describe_disk(shell.environments))
