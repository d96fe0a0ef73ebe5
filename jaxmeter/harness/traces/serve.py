"""Captures in xprof, which is served on this machine only: `python -m jaxmeter.harness.traces.serve FOLDER --port N`.

xprof itself listens on every address of the machine, on a port for browsers and on a port for other xprofs (gRPC).
It has no option against that.
"""

from __future__ import annotations

import argparse
import itertools
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from jaxmeter.harness.record.wording import describe_missing
from jaxmeter.harness.traces.captures import Capture

ADDRESS = "127.0.0.1"

_UNSAFE = re.compile(r"[^A-Za-z0-9_=.,+-]+")

UNUSABLE = 2
"""The exit code where captures cannot be served as asked; `jaxmeter.cli.ending` has it for the verbs."""


DEFAULT_PORT = 8791


class ServeError(Exception):
    """Captures cannot be served on this machine only; the message says what to do."""


def copy_captures(captures: Iterable[Capture], folder: Path) -> int:
    """Copy the sessions of captures below a folder, as xprof finds them; return how many there are.

    xprof may write next to them, and a run that has ended is not changed. Names are unique, also with several runs of
    one case.
    """
    sessions = {capture.path.parent: capture for capture in captures}
    for session, capture in sessions.items():
        names = (capture.source, capture.case, capture.variant)
        parts = (_UNSAFE.sub("-", text).strip("-.") for text in names)
        place = _choose_new(folder.joinpath(*(tuple(filter(None, parts)) or (session.name,))))
        shutil.copytree(session, place / "plugins" / "profile" / session.name)
    return len(sessions)


def _choose_new(place: Path) -> Path:
    """Return a folder's path, with a number at its end if the path is taken."""
    numbered = (place.with_name(f"{place.name}-{number}") for number in itertools.count(2))
    return next(path for path in itertools.chain([place], numbered) if not path.exists())


def serve(folder: Path, port: int) -> None:
    """Serve the captures in a folder until Ctrl-C.

    Raises:
      ServeError: xprof is missing, is a version that could listen on every address, or cannot take the port.
    """
    server = confine(_import_server())
    try:
        # xprof connects to this worker for captures of several hosts. Port 1 has no listener, and none is started.
        server.start_server(str(folder), port, worker_service_address=f"{ADDRESS}:1")
    except OSError as error:
        raise ServeError(f"xprof cannot listen on {ADDRESS}:{port}: {error}; choose another --port") from error


def confine(server: Any) -> Any:
    """Return the module `xprof.server`, changed: it listens on 127.0.0.1 only, and starts no gRPC server.

    Raises:
      ServeError: A name that has to be replaced is missing.
    """
    if missing := _find_missing(server):
        raise ServeError(
            f"this xprof has no {', '.join(missing)} and could listen on every address; install the version that "
            "jaxmeter needs: pip install 'jaxmeter[viewer]'"
        )
    server._get_wildcard_address = lambda port: ADDRESS
    server._pywrap_profiler_plugin.start_grpc_server = lambda port, max_concurrent_requests: None
    return server


def _find_missing(server: Any) -> list[str]:
    """Return the names that `serve` calls or replaces, and that another version of xprof lacks."""
    plugin = getattr(server, "_pywrap_profiler_plugin", None)
    needed = {"start_server": server, "_get_wildcard_address": server, "start_grpc_server": plugin}
    return [name for name, owner in needed.items() if not callable(getattr(owner, name, None))]


def _import_server() -> Any:
    try:
        from xprof import server
    except ImportError as error:
        raise ServeError(describe_missing(error) or f"xprof cannot be imported: {error}") from error
    return server


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve as the command line asks; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m jaxmeter.harness.traces.serve", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="captures, in folders as xprof finds them")
    parser.add_argument(
        "--port", type=int, default=DEFAULT_PORT, metavar="N", help="port of 127.0.0.1 (default: %(default)s)"
    )
    asked = parser.parse_args(arguments)
    try:
        serve(asked.folder, asked.port)
    except ServeError as error:
        print(f"error: {error}", file=sys.stderr)
        return UNUSABLE
    return 0


if __name__ == "__main__":
    sys.exit(main())
