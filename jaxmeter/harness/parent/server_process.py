"""The process of a fork server: where it is started, heard and ended. No jax."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from jaxmeter.harness.plan.messages import CODE_FOLDER, ERRORS

_BEGIN = Path(__file__).parents[1] / "child/begin.py"


@dataclass(frozen=True)
class Server:
    """A fork server.

    Args:
      control: The socket to it, with which it ends.
      process: Its process; None of one in another container.
    """

    control: socket.socket
    process: subprocess.Popen[bytes] | None = None

    def read_line(self, limit_s: float | None = None) -> bytes:
        """Return what it says next.

        Raises:
          EOFError: It has ended.
          TimeoutError: It was silent for longer than the limit.
        """
        self.control.settimeout(limit_s)
        line = b""
        while not line.endswith(b"\n"):
            data = self.control.recv(1)
            if not data:
                raise EOFError("it has ended")
            line += data
        return line

    def is_alive(self) -> bool:
        """Return whether it has not ended, where it has nothing to say: all that can be read then is its end."""
        ready, _, _ = select.select([self.control], [], [], 0)
        return not ready

    def end(self) -> None:
        """End it with all that it has started."""
        self.control.close()
        if self.process is not None:
            with suppress(ProcessLookupError, PermissionError):  # macOS refuses where only a zombie is left
                os.killpg(self.process.pid, signal.SIGKILL)  # the kernel ends its children with it
            self.process.wait()


def start_server(
    control: socket.socket,
    python: str,
    paths: str,
    module: str,
    arguments: Sequence[str],
    variables: Mapping[str, str],
    errors: Path,
    folder: str | None = None,
) -> subprocess.Popen[bytes]:
    """Start a server, which ends with this process however that ends.

    Args:
      control: The server's end of the socket to whoever uses it.
      python: Its interpreter.
      paths: Where it imports from; where empty, from the interpreter's own paths.
      module: Whose `serve` takes the number of that socket and the arguments.
      errors: The file of what it and its processes print.
      folder: Its working folder; by default that of this process.
    """
    with errors.open("wb") as stderr:
        return subprocess.Popen(
            # Unbuffered: what a process prints last is kept, also where its suite ends it without flushing.
            [python, "-u", str(_BEGIN), paths, str(os.getpid()), module, str(control.fileno()), *arguments],
            pass_fds=[control.fileno()],
            env=variables,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=stderr,
            stderr=stderr,
            start_new_session=True,  # a Ctrl-C of the terminal is the parent's to handle
        )


def start_arm(
    control: socket.socket,
    python: str,
    folder: Path,
    variables: Mapping[str, str],
    suites: Sequence[str],
    checkout: tuple[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start the server of an environment that takes turns, see `start_server`.

    Args:
      folder: With our package in CODE_FOLDER; where ERRORS and the socket of its processes appear.
      checkout: As in `StartArm`.
    """
    paths = [str(folder / CODE_FOLDER), *filter(None, [variables.get("PYTHONPATH")])]
    variables = {**variables, "PYTHONPATH": os.pathsep.join(paths)}
    module, there = ("arm", None) if checkout is None else ("checkout", checkout[1])
    arguments = (str(folder / "socket"), *(checkout or ()), *suites)
    return start_server(
        control, python, "", f"jaxmeter.harness.child.{module}", arguments, variables, folder / ERRORS, there
    )
