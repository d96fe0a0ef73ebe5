"""What a session asks of nox: an environment that holds a lock, and programs that run in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from jaxmeter.launch.environments import (
    Wanted,
    describe_disk,
    is_made,
    list_needed,
    make_environment,
    make_locked_environment,
)
from jaxmeter.launch.execution import say
from jaxmeter.launch.locks import STORES_LOCK, locate_lock
from jaxmeter.launch.options import read_options

FINE, USAGE_ERROR, INTERRUPTED = 0, 2, 130
NO_ANSWER = 3
"""Of the harness, too, whose run is not complete then."""

ENV = "/usr/bin/env"
"""Sets variables and becomes the program: nox shows the whole command, as it can be typed."""

ENVIRONMENTS = Path(".nox", "environments")
"""Folder of the environments for packages that users name, and of those in addition to the sessions' own."""


class ProgramError(Exception):
    """A program has failed whose output was needed; it has said why itself.

    Args:
      code: Its exit code.
    """

    def __init__(self, code: int) -> None:
        super().__init__(f"a program ended with {code}")
        self.code = code


class Shell(Protocol):
    """A session's environment. Nox provides it, which nothing here imports."""

    @property
    def checkout(self) -> Path:
        """Where jaxmeter's own files are."""

    @property
    def variables(self) -> Mapping[str, str]:
        """The user's environment variables."""

    def install(self, *lock_names: str) -> None:
        """Makes the environment hold exactly what the locks name."""

    def set_variable(self, name: str, value: str) -> None:
        """Sets a variable of the programs that follow."""

    def run(self, *command: str) -> int:
        """Exit code of a command: `python` is the environment's, all else is called by its path."""

    def ask(self, *command: str) -> str:
        """What a command prints on its stdout.

        Raises:
          ProgramError: It has failed.
        """


def run_jaxmeter(shell: Shell, *arguments: str) -> int:
    """Return the exit code of `jaxmeter ARGUMENTS` in the session's environment."""
    return shell.run("python", "-m", "jaxmeter", *arguments)


def run_elsewhere(shell: Shell, python: Path, *arguments: str, variables: Mapping[str, str] | None = None) -> int:
    """Return the exit code of `jaxmeter ARGUMENTS` in the environment of an interpreter.

    Args:
      variables: Environment variables of this program alone.
    """
    setting = (ENV, *(f"{name}={value}" for name, value in variables.items())) if variables else ()
    return shell.run(*setting, str(python), "-m", "jaxmeter", *arguments)


def check_selection(shell: Shell, python: str, backend: str, measuring: Sequence[str]) -> None:
    """Check in an environment that the suites have what is selected; it measures nothing.

    Raises:
      ProgramError: They have not; that program has named the nearest case.
    """
    given = read_options(measuring, "--select", "--suites", flags=("--quick", "--full"))
    if "--select" in given or "--suites" in given:
        words = [word for name, values in given.values.items() for value in values for word in (name, value)]
        levels = [name for name in ("--quick", "--full") if name in given]
        shell.ask(python, "-m", "jaxmeter", "run", "--dry-run", "--json", "--backend", backend, *words, *levels)


def prepare_stores(shell: Shell) -> Path:
    """The python that reads and writes stores: of an environment of its own, apart from what measures.

    Raises:
      UsageError: pip cannot install it.
    """
    return make_locked_environment(shell.checkout / locate_lock(STORES_LOCK), shell.checkout / ENVIRONMENTS)


def has_environment(shell: Shell, wanted: Wanted) -> bool:
    """Return whether an environment of these packages is there.

    Raises:
      UsageError: Its interpreter cannot be started.
    """
    return is_made(wanted, shell.checkout / ENVIRONMENTS, list_needed(shell.checkout / "pyproject.toml"))


def prepare_environment(shell: Shell, wanted: Wanted) -> Path:
    """The python of an environment with these packages.

    Raises:
      UsageError: pip cannot install them.
    """
    if not has_environment(shell, wanted):
        say(f"installing {wanted.words}; this takes a minute or two, once")
    return make_environment(wanted, shell.checkout / ENVIRONMENTS, list_needed(shell.checkout / "pyproject.toml"))


def say_disk(shell: Shell) -> None:
    """Say how much disk all environments take, and how to remove them."""
    say(describe_disk(shell.checkout / ENVIRONMENTS))
