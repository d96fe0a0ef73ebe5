"""The environments whose processes take turns, an earlier run's and today's: their servers. No jax."""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from jaxmeter.harness.machine.environment import list_packages, make_private, recorded_variables
from jaxmeter.harness.parent.arm_starts import START_LIMIT_S, Server, choose_start
from jaxmeter.harness.parent.arm_variables import restore_variables
from jaxmeter.harness.parent.fork_client import ServerError
from jaxmeter.harness.parent.prepare_run import UsageError
from jaxmeter.harness.plan.turns import CODE_FOLDER, ERRORS, Ready
from jaxmeter.harness.record import OtherEnvironment
from jaxmeter.harness.record.differences import steers_programs

STDERR_KEPT = 2000

PACKAGE = Path(__file__).parents[2]
"""Ours, of which the other environment needs the source alone."""


class ArmServer:
    """A process of one environment that forks others. Use as a context manager.

    Args:
      environment: Where its interpreter is, or the socket where a process of it is asked for; and what was recorded.
      variables: The environment of every process of this run; what the earlier run set takes the place of its own.
      suites: What it imports, where it can.
    """

    def __init__(self, environment: OtherEnvironment, variables: Mapping[str, str], suites: Sequence[str] = ()) -> None:
        self._environment = environment
        self._starts = choose_start(environment.python)
        self._variables = restore_variables(variables, environment.variables)
        self._suites = suites
        self._folder = Path()
        self._server: Server | None = None
        self._index = 0

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def reach(self, index: int) -> str:
        """The path of the socket where processes are asked for, of a server of this round's own.

        Raises:
          ServerError: It cannot be started.
        """
        if index != self._index or self._server is None or not self._server.is_alive():
            self._index = index
            self._stop()
            self._start()
        return str(self._folder / "socket")

    def _start(self) -> None:
        self._folder = self._starts.make_folder()
        try:
            check_environment(self._begin(), self._environment)
        except BaseException:
            self._stop()
            raise

    def _begin(self) -> Ready:
        _link_code(self._folder)
        self._server = self._starts.start(self._folder, self._variables, self._suites)
        line = self._server.read_line()
        try:
            return msgspec.json.decode(line, type=Ready)
        except msgspec.DecodeError as error:
            words = make_private(_read_words(self._folder / ERRORS))
            said = words or f"it said nothing in {START_LIMIT_S:.0f} s"
            where = self._environment.python
            raise ServerError(f"--lock-step: {where} cannot run the earlier run's code: {said}") from error

    def _stop(self) -> None:
        if self._server is not None:
            self._server.end()
            self._server = None
        shutil.rmtree(self._folder, ignore_errors=True)


def describe_own_environment(variables: Mapping[str, str]) -> OtherEnvironment:
    """This one, as it would be recorded."""
    return OtherEnvironment(
        python=sys.executable,
        version=platform.python_version(),
        packages=list_packages(),
        variables=recorded_variables(variables),
    )


def _link_code(folder: Path) -> None:
    """A folder with our package alone: next to it may lie this environment's own jax."""
    code = folder / CODE_FOLDER
    code.mkdir()
    (code / PACKAGE.name).symlink_to(PACKAGE, target_is_directory=True)


def _read_words(path: Path) -> str:
    """The end of what a server complained of."""
    return path.read_text(errors="replace").strip()[-STDERR_KEPT:] if path.is_file() else ""


def check_environment(found: Ready, wanted: OtherEnvironment) -> None:
    """Checks that an environment is that of an earlier run.

    Raises:
      UsageError: A version is another, or what steers programs is missing.
    """
    others = [
        f"{name} {found.packages.get(name, 'missing')}, not {version}"
        for name, version in wanted.packages.items()
        if (name in found.packages or steers_programs(name)) and found.packages.get(name) != version
    ]
    if found.python.rpartition(".")[0] != wanted.version.rpartition(".")[0]:
        others.insert(0, f"Python {found.python}, not {wanted.version}")
    if others:
        raise UsageError(
            f"--lock-step {wanted.python}: not the earlier run's environment: it has {', '.join(others)}; make one "
            "with the versions in that run's manifest.json, or measure a new baseline run with this one"
        )
