"""The fork server: imports jax and suites once, initialises no backend, and forks a fresh process for every message.

The parent starts it (parent/fork_client.py, child/begin.py) with the number of a socket. Over that it takes one line
for each process, the path of a message file, with two file descriptors: where the child writes heartbeats, and stderr.
"""

from __future__ import annotations

import gc
import json
import os
import socket
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import jax  # noqa: F401  imported before forking: that is the point of this process
import msgspec

from jaxmeter.harness.child.family import adopt_orphans, begin_session, end_children, list_children
from jaxmeter.harness.child.preload import import_early, import_suites
from jaxmeter.harness.child.worker import answer
from jaxmeter.harness.machine.disk import EXIT_CODE, is_disk_full
from jaxmeter.harness.plan.messages import Describe, Measure
from jaxmeter.harness.plan.probes import PROBES
from jaxmeter.harness.probes import find_look

_LONGEST_PATH = 4096


def serve(descriptor: str, *suites: str) -> None:
    """Serves until the parent closes its end.

    Args:
      descriptor: The number of the socket.
      suites: What is imported too, where it can be.
    """
    adopt_orphans()
    import_early()
    for probe in PROBES:
        find_look(probe)
    alone = import_suites(suites)
    gc.collect()
    gc.freeze()  # what is imported is never garbage: no child shall look through it again
    control = socket.socket(fileno=int(descriptor))
    server, own = os.getpid(), list_children()  # suites may have started some for all processes
    _say(control, ready=server, alone=alone)
    while True:
        line, descriptors, _, _ = socket.recv_fds(control, _LONGEST_PATH, 2)
        if not line:
            return
        heartbeat, stderr = descriptors
        pid = os.fork()
        if pid == 0:
            control.close()
            _child(Path(os.fsdecode(line.rstrip(b"\n"))), heartbeat, stderr, server)
        os.close(heartbeat)
        os.close(stderr)
        _say(control, pid=pid)
        _, status, usage = os.wait4(pid, 0)
        end_children(kept=own)
        _say(control, status=status, peak_kib=usage.ru_maxrss)


def _say(control: socket.socket, **facts: int | str) -> None:
    control.sendall(json.dumps(facts).encode() + b"\n")


def _child(message: Path, heartbeat: int, stderr: int, server: int) -> NoReturn:
    """Becomes a session of its own, answers, and ends without returning."""
    code = 1
    try:
        begin_session(server)
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
