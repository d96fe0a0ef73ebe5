"""Copies of a run's profiler captures, next to which xprof may write: a run that has ended is not changed."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxmeter.launch.options import UsageError, read_options
from jaxmeter.launch.runs import MANIFEST

CAPTURES = "cases/*/trace/*"
"""Path of the captures in a run, a folder for each variant. The launcher does not import it; a test checks it."""

SERVER = "jaxmeter.harness.traces.serve"
"""The program that serves them to this machine only; xprof's own listens on every address."""

DEFAULT_PORT = 8791


@dataclass(frozen=True)
class TraceRequest:
    """What `nox -s traces` was asked for.

    Args:
      select: Beginning of the names of the cases that are shown; empty for all.
    """

    run: Path
    port: int
    select: str


def read_trace_request(arguments: Sequence[str]) -> TraceRequest:
    """Return what `RUN`, `--port N`, `--select CASE` ask for.

    Raises:
      UsageError: No run, more than one, or a port that is none.
    """
    given = read_options(arguments, "--port", "--select")
    port, rest = given.get("--port"), given.rest
    if len(rest) != 1 or rest[0].startswith("-"):
        raise UsageError("name one run: nox -s traces -- results/RUN; options are --port N and --select CASE")
    if port is not None and not (port.isascii() and port.isdecimal() and 0 < int(port) < 2**16):
        raise UsageError(f"--port '{port}' is none; give a number from 1 to 65535")
    return TraceRequest(Path(rest[0]), DEFAULT_PORT if port is None else int(port), given.get("--select") or "")


def copy_captures(request: TraceRequest, folder: Path) -> int:
    """Copy a run's captures below a folder, one folder for each case and variant; return how many there are.

    Raises:
      UsageError: There is no run, or it has none.
    """
    if not (request.run / MANIFEST).is_file():
        raise UsageError(f"{request.run}: no run; give a folder that a measurement has written, such as results/RUN")
    captures = [path for path in sorted(request.run.glob(CAPTURES)) if path.is_dir()]
    chosen = [path for path in captures if path.parent.parent.name.startswith(request.select)]
    if not chosen:
        of = f" of a case that begins with '{request.select}'" if captures and request.select else ""
        raise UsageError(
            f"{request.run}: no captured profile{of}; capture some: nox -s cpu -- --probe trace. "
            "Captures of a run that was fetched from a store are on the machine that measured it"
        )
    for path in chosen:
        shutil.copytree(path, folder / path.parent.parent.name / path.name)
    return len(chosen)
