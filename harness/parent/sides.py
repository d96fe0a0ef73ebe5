"""The environments whose processes take turns, an earlier run's and today's: their servers. No jax."""

from __future__ import annotations

import os
import platform
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from harness.machine.environment import list_packages, make_private, recorded_variables
from harness.parent.fork_client import ServerError
from harness.parent.prepare_run import UsageError
from harness.plan.turns import ERRORS, Ready
from harness.record import OtherEnvironment
from harness.record.differences import steers_programs

START_LIMIT_S = 120.0
STDERR_KEPT = 2000

CODE = ("harness", "suites")
"""Our packages, of which the other environment needs the source alone."""


TODAYS = ("JAX_PLATFORMS", "LD_PRELOAD")
"""Variables that are never taken over from a record, beside our own: where a run is made, and whose code it loads."""


class SideServer:
    """A process of one environment that forks others. Use as a context manager.

    Args:
      environment: Where its interpreter is, and what was recorded of it.
      variables: The environment of every process of this run; what the earlier run set takes the place of its own.
      suites: What it imports, where it can.
    """

    def __init__(self, environment: OtherEnvironment, variables: Mapping[str, str], suites: Sequence[str] = ()) -> None:
        self._environment = environment
        self._python = _find_python(environment.python)
        self._variables = restore_variables(variables, environment.variables)
        self._suites = suites
        self._folder = Path()
        self._process: subprocess.Popen[bytes] | None = None
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
        if index != self._index or self._process is None or self._process.poll() is not None:
            self._index = index
            self._stop()
            self._start()
        return str(self._folder / "socket")

    def _start(self) -> None:
        # A socket's path has 107 bytes at most, and a run's folder may be anywhere.
        self._folder = Path(tempfile.mkdtemp(prefix="jaxmeter-"))
        try:
            check_environment(self._begin(), self._environment)
        except BaseException:
            self._stop()
            raise

    def _begin(self) -> Ready:
        errors = self._folder / ERRORS
        paths = [str(_link_code(self._folder)), *filter(None, [self._variables.get("PYTHONPATH")])]
        server = ["harness.child.side", str(self._folder / "socket"), *self._suites]
        command = [self._python, "-m", "harness.child.begin", str(os.getpid()), *server]
        with errors.open("wb") as stderr:
            self._process = subprocess.Popen(
                command,
                env={**self._variables, "PYTHONPATH": os.pathsep.join(paths)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
            )
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], START_LIMIT_S)
        line = self._process.stdout.readline() if ready else b""
        try:
            return msgspec.json.decode(line, type=Ready)
        except msgspec.DecodeError as error:
            words = make_private(errors.read_text(errors="replace").strip()[-STDERR_KEPT:])
            said = words or f"it said nothing in {START_LIMIT_S:.0f} s"
            raise ServerError(f"--lock-step: {self._python} cannot run the earlier run's code: {said}") from error

    def _stop(self) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)  # the kernel ends its children with it
            self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()
            self._process = None
        shutil.rmtree(self._folder, ignore_errors=True)


def describe_own_environment(variables: Mapping[str, str]) -> OtherEnvironment:
    """This one, as it would be recorded."""
    return OtherEnvironment(
        python=sys.executable,
        version=platform.python_version(),
        packages=list_packages(),
        variables=recorded_variables(variables),
    )


def _find_python(given: str) -> str:
    """The interpreter's absolute path, its links not followed: they tell its environment.

    Raises:
      UsageError: There is none.
    """
    found = shutil.which(Path(given).expanduser())
    if found is None:
        raise UsageError(f"--lock-step {given}: no such program; give the python of the earlier run's environment")
    return os.path.abspath(found)  # noqa: PTH100  Path.resolve would follow links


def restore_variables(variables: Mapping[str, str], recorded: Mapping[str, str]) -> dict[str, str]:
    """Today's variables, with those that steer JAX as an earlier run recorded them.

    A record is only a file: no other variable of it is set.
    """
    today, then = recorded_variables(variables), recorded_variables(recorded)
    kept = {
        name: value
        for name, value in variables.items()
        if name not in today
        or _is_todays(name)
        or today[name] == then.get(name)  # as it was before it was made private
    }
    home = str(Path.home())
    taken = {
        name: value.replace("~/", f"{home}/")
        for name, value in then.items()
        if name not in kept and not _is_todays(name) and "\0" not in value
    }
    return {**kept, **taken}


def _is_todays(name: str) -> bool:
    return name in TODAYS or name.startswith("JAXMETER_")


def _link_code(folder: Path) -> Path:
    """A folder with our packages alone: beside them may lie this environment's own jax."""
    code = folder / "code"
    code.mkdir()
    for name in CODE:
        package = Path(__file__).parents[2] / name
        if package.is_dir():
            (code / name).symlink_to(package, target_is_directory=True)
    return code


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
