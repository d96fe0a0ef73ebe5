"""The modules that a fork server imports before it forks: suites, and what they and JAX import at first use."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from jaxmeter.harness.child.family import die_with_parent, end_children, list_children
from jaxmeter.harness.declare import fingerprint
from jaxmeter.harness.declare.catalogue import DEFAULT_SUITES, find_suites_once
from jaxmeter.harness.machine.environment import describe_error

_THREADS = Path("/proc/self/task")
_LONGEST_WORDS = 4096

_AT_FIRST_USE = ("flax.linen", "optax")
"""Modules that suites import: their import takes 0.4 s, once instead of in each process. They initialise no backend."""

_AT_FIRST_LOWERING = ("jaxlib.mlir.dialects.builtin", "jaxlib.mlir.dialects.mhlo", "jaxlib.lapack", "scipy.linalg")
"""Modules that JAX imports at its first lowering: 20 ms, once instead of in each process, and 200 ms at the first use
of LAPACK. The harness's own imports include a part of them. Another jaxlib may lack them."""

_TRIAL_LIMIT_S = 50
"""The trial and the import itself are part of the server's start, which may take 120 s."""
_DO_NOTHING_ONCE = "the top of a suite runs more than once, so it must only declare"


def import_early() -> None:
    """Import the modules of first use that are installed and work with this JAX."""
    for name in (*_AT_FIRST_LOWERING, *_AT_FIRST_USE):
        with suppress(Exception):
            import_module(name)


def import_suites(names: Sequence[str]) -> str:
    """Import suites here, once for all processes, unless the import fails or starts threads, which a fork would lose.

    A separate process tries the import first; the processes that need a faulty suite report what is wrong with it.
    All processes of a run then have the same suites, even if the files change meanwhile.

    Returns:
      Why every process has to import the suites itself, and what to do about it; empty if none has to, if no
      names are given, and outside Linux.
    """
    if not names or not _THREADS.is_dir():  # not Linux
        return ""
    if tuple(names) == (DEFAULT_SUITES,):  # only declares, as tests hold: a trial would cost 0.7 s of each server
        _read(names)
        return ""
    report = os.memfd_create("trial")
    server, own = os.getpid(), list_children()
    pid = os.fork()
    if pid == 0:
        die_with_parent(server)
        os.write(report, json.dumps(_tried(names)).encode())
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    end_children(kept=own)
    words = os.pread(report, _LONGEST_WORDS, 0)
    os.close(report)
    reason = str(json.loads(words)) if words else _ended(status)
    if not reason:
        _read(names)
    return reason


def _tried(names: Sequence[str]) -> str:
    """Import suites in a process that may be lost; return why the server cannot import them, or an empty text."""
    signal.alarm(_TRIAL_LIMIT_S)  # ends the process
    try:
        _read(names)
    except BaseException as error:  # noqa: BLE001  whatever it was, it must not happen to the server
        return f"a trial of importing them failed: {describe_error(error)}; {_DO_NOTHING_ONCE}"
    if len(list(_THREADS.iterdir())) > 1:  # a backend begins many
        return "importing them begins threads, as making an array does; make arrays in functions, such as inputs()"
    return ""


def _ended(status: int) -> str:
    """Return why a process that tried to import suites wrote no answer, by its wait status."""
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
        return f"importing them takes longer than {_TRIAL_LIMIT_S} s; do long work in functions, such as inputs()"
    return f"a trial of importing them ended its process; {_DO_NOTHING_ONCE}"


def _read(names: Sequence[str]) -> None:
    """Import suites and read their source at the same moment."""
    fingerprint.read([workload.module for suite in find_suites_once(tuple(names)) for workload in suite.workloads])
