"""The environments whose processes take turns, an earlier run's and today's: their servers and variables. No jax."""

from __future__ import annotations

import os
import platform
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from jaxmeter.harness.machine.environment import list_packages, make_private, recorded_variables
from jaxmeter.harness.machine.platforms import PREALLOCATE, Platform, list_unused_variables
from jaxmeter.harness.parent.against import OPTION, Checkout
from jaxmeter.harness.parent.fork_client import START_LIMIT_S, Server, ServerError, ServerLostError, start_arm
from jaxmeter.harness.parent.prepare_run import UsageError
from jaxmeter.harness.plan.messages import CODE_FOLDER, ERRORS, LOADED, DescribeCode, Ready, Reply, Seen, StartArm
from jaxmeter.harness.record import OtherEnvironment, PlannedCase
from jaxmeter.harness.record.differences import steers_programs
from jaxmeter.harness.record.settings import is_plain_setting, leave_out_dumps

STDERR_KEPT = 2000

PACKAGE = Path(__file__).parents[2]
"""Ours, of which the other environment needs the source alone."""


class ArmServer:
    """A process of one environment that forks others. Use as a context manager.

    Args:
      environment: What was recorded, and where its interpreter is; or, in a folder that both see, the socket of another
        container's arms.py.
      variables: The environment of every process of this run; what the earlier run set takes the place of its own.
      suites: What it imports, where it can.
      checkout: Where the earlier run's code comes from; None where it is today's suites, under another environment.

    Raises:
      UsageError: There is no such interpreter or socket, or the variables cannot be restored.
    """

    def __init__(
        self,
        environment: OtherEnvironment,
        variables: Mapping[str, str],
        suites: Sequence[str] = (),
        checkout: Checkout | None = None,
    ) -> None:
        self._environment = environment
        path = Path(environment.python).expanduser()
        self._gateway = path if path.is_socket() else None
        self._python = "" if self._gateway else _find_python(environment.python)
        self._variables = restore_variables(variables, environment.variables)
        self._suites = suites if checkout is None else checkout.suites
        self._folders = None if checkout is None else (str(checkout.today), str(checkout.then))
        self._running: _Running | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def start(self, index: int) -> _Running:
        """Start a server of this round's own, without waiting for it, unless it runs already.

        Raises:
          ServerError, ServerLostError: It cannot be started.
        """
        if self._running is not None and self._running.serves(index):
            return self._running
        self._stop()
        # A short path: a socket's has 107 bytes at most, and a run's folder may be anywhere.
        near = {"prefix": "jaxmeter-"} if self._gateway is None else {"dir": str(self._gateway.parent)}
        folder = Path(tempfile.mkdtemp(**near))
        try:
            _link_code(folder)
            server = self._start_here(folder) if self._gateway is None else self._start_there(self._gateway, folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self._running = _Running(index, folder, server)
        return self._running

    def reach(self, index: int) -> str:
        """Return the path of the socket where processes are requested from a server of this round's own.

        Raises:
          ServerError, ServerLostError: It cannot be started.
          UsageError: It is not the earlier run's environment.
        """
        running = self.start(index)
        if not running.is_ready:
            try:
                check_environment(self._read_ready(running), self._environment)
            except BaseException:
                self._stop()
                raise
            running.is_ready = True
        return str(running.folder / "socket")

    def describe_code(self, index: int, cases: Sequence[PlannedCase], platform: Platform) -> Seen:
        """Return which code of some cases its processes load.

        Raises:
          ServerError: It cannot be started, or does not answer.
          UsageError: The suites cannot be used there.
        """
        path = self.reach(index)
        try:
            with socket.socket(socket.AF_UNIX) as connected:
                connected.settimeout(START_LIMIT_S)
                connected.connect(path)
                with connected.makefile("rwb") as stream:
                    stream.write(msgspec.json.encode(DescribeCode(cases=tuple(cases), platform=platform)) + b"\n")
                    stream.flush()
                    reply = msgspec.json.decode(stream.readline(), type=Reply)
        except (OSError, msgspec.DecodeError) as error:
            words = make_private(_read_words(Path(path).with_name(ERRORS)))
            raise ServerError(f"{_name(self._environment)}: cannot inspect its code: {words or error}") from error
        if reply.seen is None:
            raise UsageError(f"{_name(self._environment)}: {make_private(reply.refusal)}")
        return reply.seen

    def _read_ready(self, running: _Running) -> Ready:
        try:
            return msgspec.json.decode(running.server.read_line(START_LIMIT_S), type=Ready)
        except (EOFError, OSError) as error:
            words = make_private(_read_words(running.folder / ERRORS))
            name = _name(self._environment)
            if isinstance(error, TimeoutError):
                raise ServerLostError(
                    f"{name}: did not start within {START_LIMIT_S:.0f} s: something has stopped it, or the machine is "
                    f"too slow; try again\n{words}"
                ) from error
            process = running.server.process
            code = 0 if process is None else process.wait(START_LIMIT_S)
            if code < 0:
                raise ServerLostError(
                    f"{name}: was ended by signal {-code} while it started; try again\n{words}"
                ) from error
            said = words or "no error message"
            raise ServerError(f"{name}: cannot run the earlier run's code: {said}") from error

    def _start_here(self, folder: Path) -> Server:
        control, theirs = socket.socketpair()
        with theirs:
            return Server(
                control, start_arm(theirs, self._python, folder, self._variables, self._suites, self._folders)
            )

    def _start_there(self, gateway: Path, folder: Path) -> Server:
        variables = choose_steering(self._variables)
        asked = StartArm(folder=str(folder), variables=variables, suites=tuple(self._suites), checkout=self._folders)
        control = socket.socket(socket.AF_UNIX)
        try:
            control.connect(str(gateway))
            control.sendall(msgspec.json.encode(asked) + b"\n")
        except OSError as error:
            control.close()
            raise ServerLostError(
                f"--lock-step: {gateway}: the other container has ended ({error.strerror})"
            ) from error
        return Server(control)

    def _stop(self) -> None:
        if self._running is not None:
            self._running.server.end()
            shutil.rmtree(self._running.folder, ignore_errors=True)
            self._running = None


@dataclass
class _Running:
    """A server that was started, and the folder that was made for it alone."""

    index: int
    folder: Path
    server: Server
    is_ready: bool = False

    def serves(self, index: int) -> bool:
        """Return whether it is of this round, and has not ended."""
        return index == self.index and (not self.is_ready or self.server.is_alive())


def describe_own_environment(variables: Mapping[str, str]) -> OtherEnvironment:
    """This one, as it would be recorded."""
    return OtherEnvironment(
        python=sys.executable,
        version=platform.python_version(),
        packages=list_packages(),
        variables=recorded_variables(variables),
    )


def _find_python(given: str) -> str:
    """Return the interpreter's absolute path without following links, since links identify a virtual environment.

    Raises:
      UsageError: There is no such program.
    """
    python = shutil.which(Path(given).expanduser())
    if python is None:
        raise UsageError(f"--lock-step {given}: no such program; give the python of the earlier run's environment")
    return os.path.abspath(python)  # noqa: PTH100  Path.resolve would follow links


def _link_code(folder: Path) -> None:
    """A folder with our package alone: next to it may lie this environment's own jax."""
    code = folder / CODE_FOLDER
    code.mkdir()
    (code / PACKAGE.name).symlink_to(PACKAGE, target_is_directory=True)


def _read_words(path: Path) -> str:
    """The end of what a server complained of."""
    return path.read_text(errors="replace").strip()[-STDERR_KEPT:] if path.is_file() else ""


def check_environment(actual: Ready, wanted: OtherEnvironment) -> None:
    """Checks that an environment is that of an earlier run.

    Raises:
      UsageError: A version is another, or what steers programs is missing.
    """
    others = [
        f"{name} {actual.packages.get(name, 'missing')}, not {version}"
        for name, version in wanted.packages.items()
        if (name in actual.packages or steers_programs(name)) and actual.packages.get(name) != version
    ]
    if actual.python.rpartition(".")[0] != wanted.version.rpartition(".")[0]:
        others.insert(0, f"Python {actual.python}, not {wanted.version}")
    if others:
        raise UsageError(
            f"{_name(wanted)}: not the earlier run's environment: it has {', '.join(others)}; create "
            "an environment with the versions in that run's manifest.json and name it with --lock-step PYTHON, or "
            "measure a new baseline run with this environment"
        )


def _name(environment: OtherEnvironment) -> str:
    """The option that has named it."""
    if environment.checkout is not None and environment.python == sys.executable:
        return f"{OPTION} {environment.checkout}"
    return f"--lock-step {environment.python}"


_REAP_S = 0.1
"""How often servers that have ended are looked for: the system keeps those that nobody has waited for."""


def main() -> None:
    """Serve at the path that the command line names, where the socket appears once connections are taken."""
    path = Path(sys.argv[1])
    begun = path.with_suffix(".begun")
    servers: list[subprocess.Popen[bytes]] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(begun))
        listener.listen()
        begun.rename(path)
        while True:
            ready, _, _ = select.select([listener.fileno(), 0], [], [], _REAP_S)
            servers = [server for server in servers if server.poll() is None]
            if 0 in ready and not os.read(0, 1):
                return
            if listener.fileno() in ready:
                with listener.accept()[0] as connection:
                    try:
                        servers.append(_start(connection))
                    except (OSError, msgspec.DecodeError):  # whoever asked learns of it by the end of the connection
                        traceback.print_exc()


def _start(connection: socket.socket) -> subprocess.Popen[bytes]:
    with connection.makefile("rb") as stream:
        asked = msgspec.json.decode(stream.readline(), type=StartArm)
    variables = exchange_variables(os.environ, asked.variables)
    folder = Path(asked.folder)
    return start_arm(connection, sys.executable, folder, variables, asked.suites, asked.checkout)


def exchange_variables(own: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of this environment, with those that steer JAX as they are given."""
    steering = recorded_variables(own).keys() - {LOADED}
    return {**{name: value for name, value in own.items() if name not in steering}, **given}


if __name__ == "__main__":
    main()


TODAYS = ("JAX_PLATFORMS", LOADED, PREALLOCATE)
"""Variables that, in addition to jaxmeter's own, are never taken from a record. They decide where a run is made, whose
code it loads, and how its processes share a device's memory."""


def restore_variables(variables: Mapping[str, str], recorded: Mapping[str, str]) -> dict[str, str]:
    """Today's variables, with those that steer JAX as an earlier run recorded them.

    A record is only a file: no other variable of it is set, and none that names a file.

    Raises:
      UsageError: One that steers JAX names a file, and is another today.
    """
    today, then = (_choose_steering(recorded_variables(arm)) for arm in (variables, recorded))
    kept = {
        name: value
        for name, value in variables.items()
        if name not in today
        or _is_todays(name)
        or today[name] == then.get(name)  # as it was before it was made private
    }
    taken = {name: value for name, value in then.items() if name not in kept and not _is_todays(name)}
    refused = next((name for name, value in taken.items() if not is_plain_setting(name, value)), None)
    if refused is not None:
        raise UsageError(
            f"--lock-step: the earlier run had {refused}={taken[refused]!r}, which may name a file, and no file "
            f"is followed that a record names; set {refused} to that here, if it is yours"
        )
    return {**kept, **taken}


def _choose_steering(recorded: Mapping[str, str]) -> dict[str, str]:
    """Without what is never used of them: caches, which are the run's own, and what is written down while compiling."""
    unused = list_unused_variables(recorded)
    steering = {name: leave_out_dumps(name, value) for name, value in recorded.items() if name not in unused}
    return {name: value for name, value in steering.items() if value is not None}


def _is_todays(name: str) -> bool:
    return name in TODAYS or name.startswith("JAXMETER_")


def find_refusal(name: str, value: str) -> str | None:
    """Why a variable cannot be set for one of two environments in lock-step; None where it can.

    The earlier run's processes are given what its record holds of it.
    """
    if _is_todays(name) or list_unused_variables({name: value}):
        return "jaxmeter itself decides on it"
    recorded = recorded_variables({name: value})
    if name not in recorded:
        return (
            "no run records it, so that nothing could say what differs; JAX_…, XLA_… and LIBTPU_INIT_ARGS are recorded"
        )
    if not is_plain_setting(name, recorded[name]):
        return "its value may name a file, and no file is followed that a record names"
    return None


def choose_steering(variables: Mapping[str, str]) -> dict[str, str]:
    """Those that another container's process takes from this one; all others are of its own environment."""
    return {name: value for name, value in variables.items() if name != LOADED and recorded_variables({name: value})}
