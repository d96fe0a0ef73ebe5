"""The fork server: imports jax and suites once, initialises no backend, and forks a fresh process for every message.

The parent starts it (parent/fork_client.py): `python -m harness.child.server FD SUITES...`. Over that socket it takes
one line per process, the path of a message file, with two file descriptors: where the child writes heartbeats, and its
stderr.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import socket
import sys
import traceback
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import jax  # noqa: F401  imported before forking: that is the point of this process
import msgspec

from harness.child.worker import answer
from harness.declare import fingerprint
from harness.declare.catalogue import find_suites
from harness.machine.disk import EXIT_CODE, is_disk_full
from harness.machine.environment import describe_error
from harness.plan.messages import Describe, Measure
from harness.plan.probes import PROBES
from harness.probes import find_look

_AT_FIRST_USE = ("flax.linen", "optax")
"""What suites import: 0.4 s that each process would spend again. They begin no backend."""

_AT_FIRST_LOWERING = ("jaxlib.mlir.dialects.builtin", "jaxlib.mlir.dialects.mhlo", "jaxlib.lapack", "scipy.linalg")
"""What jax imports only then: 20 ms that each process would spend again, and 200 ms where LAPACK is first needed, of
which the harness' own imports would take away some. Another jaxlib may lack them."""

_TRIAL_LIMIT_S = 50
"""The trial and the import itself are part of the server's start, which may take 120 s."""
_THREADS = Path("/proc/self/task")
_DO_NOTHING_ONCE = "the top of a suite runs more than once, so it must only declare"

_PR_SET_PDEATHSIG = 1
_LONGEST_PATH = 4096


def main() -> None:
    """Serves until the parent closes its end."""
    _die_with_parent()
    for name in (*_AT_FIRST_LOWERING, *_AT_FIRST_USE):
        with suppress(ImportError):
            import_module(name)
    for probe in PROBES:
        find_look(probe)
    alone = _import_suites(sys.argv[2:])
    gc.collect()
    gc.freeze()  # what is imported is never garbage: no child shall look through it again
    control = socket.socket(fileno=int(sys.argv[1]))
    _say(control, ready=os.getpid(), alone=alone)
    while True:
        line, descriptors, _, _ = socket.recv_fds(control, _LONGEST_PATH, 2)
        if not line:
            return
        heartbeat, stderr = descriptors
        pid = os.fork()
        if pid == 0:
            control.close()
            _child(Path(os.fsdecode(line.rstrip(b"\n"))), heartbeat, stderr)
        os.close(heartbeat)
        os.close(stderr)
        _say(control, pid=pid)
        _, status, usage = os.wait4(pid, 0)
        _say(control, status=status, peak_kib=usage.ru_maxrss)


def _import_suites(names: list[str]) -> str:
    """Imports suites here, once for all processes, unless that fails or begins threads, which a fork would lose.

    A process of its own tries it first; what is wrong with a suite, those that need it tell. All processes of a run
    have the same suites then, whatever happens to their files meanwhile.

    Returns:
      Why every process has to import them alone, and what to do about it; empty where none has to, or asked for it.
    """
    if not names or not _THREADS.is_dir():  # not Linux
        return ""
    told = os.memfd_create("trial")
    pid = os.fork()
    if pid == 0:
        os.write(told, json.dumps(_tried(names)).encode())
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    words = os.pread(told, _LONGEST_PATH, 0)
    os.close(told)
    reason = str(json.loads(words)) if words else _ended(status)
    if not reason:
        _read(names)
    return reason


def _tried(names: list[str]) -> str:
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


def _read(names: list[str]) -> None:
    """Imports suites, and reads their texts: both of one moment."""
    fingerprint.read([workload.module for suite in find_suites(names) for workload in suite.workloads])


def _say(control: socket.socket, **facts: int | str) -> None:
    control.sendall(json.dumps(facts).encode() + b"\n")


def _child(message: Path, heartbeat: int, stderr: int) -> None:
    """Becomes a session of its own, answers, and ends without returning."""
    code = 1
    try:
        os.setsid()  # its own group, so that ending it ends whatever it started
        _die_with_parent()
        _offer_to_out_of_memory_killer()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(stderr, 1)
        os.dup2(stderr, 2)
        answer(msgspec.json.decode(message.read_bytes(), type=Describe | Measure), heartbeat)
        code = 0
    except BaseException as error:  # noqa: BLE001  whatever it was, the parent shall read it
        code = EXIT_CODE if is_disk_full(error) else 1
        with suppress(OSError):  # a full disk has no room for words
            traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):
                stream.flush()
        os._exit(code)  # no teardown: a device's threads may hang in it, and the answer is written


def _die_with_parent() -> None:
    """On Linux: the kernel ends this process when its parent ends, however that happens."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _offer_to_out_of_memory_killer() -> None:
    """The measured process shall be chosen, not the one that keeps the record."""
    try:
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    except OSError:  # not Linux, or not allowed: the kernel's own choice stands
        return


if __name__ == "__main__":
    main()
