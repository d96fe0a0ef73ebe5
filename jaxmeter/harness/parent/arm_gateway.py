"""Starts servers of this environment for a run that measures in another container, whose files are others.

python -m jaxmeter.harness.parent.arm_gateway SOCKET

The launcher runs it. Every connection to the socket asks for one server (child/arm.py) and becomes the socket to it.
This process ends with its standard input, that of whoever started the container; its servers end with it.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path

import msgspec

from jaxmeter.harness.machine.environment import recorded_variables
from jaxmeter.harness.parent.server_process import start_arm
from jaxmeter.harness.plan.turns import LOADED, StartArm

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
