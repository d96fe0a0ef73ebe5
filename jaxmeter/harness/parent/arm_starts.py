"""How a server of an environment begins: by an interpreter of this machine, or in another container. No jax."""

from __future__ import annotations

import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from jaxmeter.harness.parent.arm_variables import choose_steering
from jaxmeter.harness.parent.fork_client import BEGIN, ServerError
from jaxmeter.harness.parent.prepare_run import UsageError
from jaxmeter.harness.plan.turns import CODE_FOLDER, ERRORS, StartArm

START_LIMIT_S = 120.0


class Server(Protocol):
    """A server that was started."""

    def read_line(self) -> bytes:
        """What it says first; empty where it says nothing in START_LIMIT_S."""

    def is_alive(self) -> bool:
        """Whether it has not ended."""

    def end(self) -> None:
        """Ends it with its children."""


class Start(Protocol):
    """How a server begins."""

    def make_folder(self) -> Path:
        """A new one with a short path: a socket's has 107 bytes at most, and a run's folder may be anywhere."""

    def start(self, folder: Path, variables: Mapping[str, str], suites: Sequence[str]) -> Server:
        """A server at the folder's `socket`, with these variables.

        Raises:
          ServerError: It cannot be started.
        """


@dataclass(frozen=True)
class _StartHere:
    """By an interpreter of this machine."""

    python: str

    def make_folder(self) -> Path:
        return Path(tempfile.mkdtemp(prefix="jaxmeter-"))

    def start(self, folder: Path, variables: Mapping[str, str], suites: Sequence[str]) -> Server:
        paths = [str(folder / CODE_FOLDER), *filter(None, [variables.get("PYTHONPATH")])]
        server = ["jaxmeter.harness.child.arm", str(folder / "socket"), *suites]
        with (folder / ERRORS).open("wb") as stderr:
            return _Process(
                subprocess.Popen(
                    [self.python, str(BEGIN), "", str(os.getpid()), *server],
                    env={**variables, "PYTHONPATH": os.pathsep.join(paths)},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                    start_new_session=True,
                )
            )


@dataclass(frozen=True)
class _Process:
    """A process of this machine."""

    process: subprocess.Popen[bytes]

    def read_line(self) -> bytes:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], START_LIMIT_S)
        return self.process.stdout.readline() if ready else b""

    def is_alive(self) -> bool:
        return self.process.poll() is None

    def end(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)  # the kernel ends its children with it
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


@dataclass(frozen=True)
class _StartThere:
    """By a process of another container (child/sides.py), whose socket lies in a folder that both see."""

    door: Path

    def make_folder(self) -> Path:
        return Path(tempfile.mkdtemp(dir=self.door.parent))

    def start(self, folder: Path, variables: Mapping[str, str], suites: Sequence[str]) -> Server:
        asked = StartArm(folder=str(folder), variables=choose_steering(variables), suites=tuple(suites))
        connected = socket.socket(socket.AF_UNIX)
        try:
            connected.connect(str(self.door))
            connected.sendall(msgspec.json.encode(asked) + b"\n")
        except OSError as error:
            connected.close()
            raise ServerError(f"--lock-step: {self.door}: the other container has ended ({error.strerror})") from error
        return _Connection(connected)


@dataclass(frozen=True)
class _Connection:
    """A server of another container, which ends with the connection."""

    connected: socket.socket

    def read_line(self) -> bytes:
        self.connected.settimeout(START_LIMIT_S)
        with suppress(OSError), self.connected.makefile("rb") as lines:
            return lines.readline()
        return b""

    def is_alive(self) -> bool:
        ready, _, _ = select.select([self.connected], [], [], 0)
        return not ready  # it says one line only: what else there is, is its end

    def end(self) -> None:
        self.connected.close()


def choose_start(given: str) -> Start:
    """How the servers of an environment begin.

    Raises:
      UsageError: There is no such interpreter or socket.
    """
    path = Path(given).expanduser()
    return _StartThere(path) if path.is_socket() else _StartHere(_find_python(given))


def _find_python(given: str) -> str:
    """The interpreter's absolute path, its links not followed: they tell its environment.

    Raises:
      UsageError: There is none.
    """
    found = shutil.which(Path(given).expanduser())
    if found is None:
        raise UsageError(f"--lock-step {given}: no such program; give the python of the earlier run's environment")
    return os.path.abspath(found)  # noqa: PTH100  Path.resolve would follow links
