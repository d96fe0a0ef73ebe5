"""What a fork server imports before it forks: suites, and what they and jax import at first use."""

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
from jaxmeter.harness.declare.catalogue import DEFAULT_SUITES, find_suites
from jaxmeter.harness.machine.environment import describe_error

_THREADS = Path("/proc/self/task")
_LONGEST_WORDS = 4096

_AT_FIRST_USE = ("flax.linen", "optax")
"""What suites import: 0.4 s that each process would spend again. They begin no backend."""

_AT_FIRST_LOWERING = ("jaxlib.mlir.dialects.builtin", "jaxlib.mlir.dialects.mhlo", "jaxlib.lapack", "scipy.linalg")
"""What jax imports only then: 20 ms that each process would spend again, and 200 ms where LAPACK is first needed, of
which the harness' own imports would take away some. Another jaxlib may lack them."""

_TRIAL_LIMIT_S = 50
"""The trial and the import itself are part of the server's start, which may take 120 s."""
_DO_NOTHING_ONCE = "the top of a suite runs more than once, so it must only declare"


def import_early() -> None:
    """Imports what is imported at first use, if it is there and goes with this jax."""
    for name in (*_AT_FIRST_LOWERING, *_AT_FIRST_USE):
        with suppress(Exception):
            import_module(name)


def import_suites(names: Sequence[str]) -> str:
    """Imports suites here, once for all processes, unless that fails or begins threads, which a fork would lose.

    A process of its own tries it first; what is wrong with a suite, those that need it tell. All processes of a run
    have the same suites then, whatever happens to their files meanwhile.

    Returns:
      Why every process has to import them alone, and what to do about it; empty where none has to, or asked for it.
    """
    if not names or not _THREADS.is_dir():  # not Linux
        return ""
    if tuple(names) == (DEFAULT_SUITES,):  # only declares, as tests hold: a trial would cost 0.7 s of each server
        _read(names)
        return ""
    told = os.memfd_create("trial")
    server, own = os.getpid(), list_children()
    pid = os.fork()
    if pid == 0:
        die_with_parent(server)
        os.write(told, json.dumps(_tried(names)).encode())
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    end_children(kept=own)
    words = os.pread(told, _LONGEST_WORDS, 0)
    os.close(told)
    reason = str(json.loads(words)) if words else _ended(status)
    if not reason:
        _read(names)
    return reason


def _tried(names: Sequence[str]) -> str:
    """Imports suites in a process that may be lost by it; says why that cannot be done for all, or nothing."""
    signal.alarm(_TRIAL_LIMIT_S)  # ends the process
    try:
        _read(names)
    except BaseException as error:  # noqa: BLE001  whatever it was, it must not happen to the server
        return f"a trial of importing them failed: {describe_error(error)}; {_DO_NOTHING_ONCE}"
    if len(list(_THREADS.iterdir())) > 1:  # a backend begins many
        return "importing them begins threads, as making an array does; make arrays in functions, such as inputs()"
    return ""


def _ended(status: int) -> str:
    """Why a process that tried to import suites said nothing, by its wait status."""
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
        return f"importing them takes longer than {_TRIAL_LIMIT_S} s; do long work in functions, such as inputs()"
    return f"a trial of importing them ended its process; {_DO_NOTHING_ONCE}"


def _read(names: Sequence[str]) -> None:
    """Imports suites, and reads their texts: both of one moment."""
    fingerprint.read([workload.module for suite in find_suites(names) for workload in suite.workloads])
