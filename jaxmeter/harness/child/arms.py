"""Starts servers of this environment for a run that measures in another container, whose files are others.

python -m jaxmeter.harness.child.arms SOCKET

The launcher runs it. Every connection to the socket asks for one server (side.py) and is told its versions; with the
connection the server ends. This process ends with its standard input: that of whoever started the container.
"""

from __future__ import annotations

import os
import select
import signal
import socketserver
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from jaxmeter.harness.child.family import die_with_parent
from jaxmeter.harness.machine.environment import recorded_variables
from jaxmeter.harness.plan.turns import CODE_FOLDER, ERRORS, LOADED, StartArm

STARTED_AS = os.getpid()


class _Asked(socketserver.StreamRequestHandler):
    """One server, in a process that waits for the end of its connection."""

    def handle(self) -> None:
        die_with_parent(STARTED_AS)
        asked = msgspec.json.decode(self.rfile.readline(), type=StartArm)
        folder = Path(asked.folder)
        paths = [str(folder / CODE_FOLDER), *filter(None, [os.environ.get("PYTHONPATH")])]
        arm = ["jaxmeter.harness.child.arm", str(folder / "socket"), *asked.suites]
        with (folder / ERRORS).open("wb") as stderr:
            server = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("begin.py")), "", str(os.getpid()), *arm],
                env={**exchange_variables(os.environ, asked.variables), "PYTHONPATH": os.pathsep.join(paths)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
            )
        try:
            assert server.stdout is not None
            self.wfile.write(server.stdout.readline() or b"\n")
            ended = os.pidfd_open(server.pid)
            select.select([self.connection, ended], [], [])  # until it has ended, or nobody needs it any more
        finally:
            with suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)


class _Server(socketserver.ForkingMixIn, socketserver.UnixStreamServer):
    """Answers until its standard input ends."""

    block_on_close = False  # the kernel ends who answers

    def service_actions(self) -> None:
        super().service_actions()
        ready, _, _ = select.select([0], [], [], 0)
        if ready and not os.read(0, 1):
            raise SystemExit


def exchange_variables(own: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """The variables of this environment, with those that steer JAX as they are given."""
    steering = recorded_variables(own).keys() - {LOADED}
    return {**{name: value for name, value in own.items() if name not in steering}, **given}


def main() -> None:
    """Serves at the path that the command line names, where the socket appears once it answers."""
    path = Path(sys.argv[1])
    begun = path.with_suffix(".begun")
    with _Server(str(begun), _Asked) as server:
        begun.rename(path)
        server.serve_forever(poll_interval=0.1)


if __name__ == "__main__":
    main()
