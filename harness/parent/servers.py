"""The fork servers of a run: one for each place whose processes have an environment of their own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from harness.machine.environment import usable_cores
from harness.machine.places import Place, make_process_environment
from harness.parent.fork_client import ForkServer


class Servers:
    """Starts a place's server when it is first asked for. Made by `start_servers`, which ends them."""

    def __init__(self, stack: ExitStack, scratch: Path, data: str | None, suites: tuple[str, ...]) -> None:
        self._stack, self._scratch, self._data, self._suites = stack, scratch, data, suites
        self._running: dict[frozenset[tuple[str, str]], ForkServer] = {}

    def of(self, place: Place) -> ForkServer:
        """The place's server; places with equal environments share one."""
        variables = make_process_environment(place, os.environ, allowed_cores=usable_cores(), data=self._data)
        key = frozenset(variables.items())
        if key not in self._running:
            scratch = self._scratch / f"server{len(self._running)}"
            self._running[key] = self._stack.enter_context(ForkServer(variables, scratch, self._suites))
        return self._running[key]


@contextmanager
def start_servers(scratch: Path, data: str | None = None, suites: tuple[str, ...] = ()) -> Iterator[Servers]:
    """Servers for the time of a block.

    Args:
      scratch: Is removed at the end.
      data: The folder that suites may read.
      suites: Are imported only once, for many processes.
    """
    try:
        with ExitStack() as stack:
            yield Servers(stack, scratch, data, suites)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
