"""The fork server of a run: one process for each message.

Over the parent's socket (parent/fork_client.py) it takes one line for each, the path of a message file, with two file
descriptors: where the process writes heartbeats, and stderr.
"""

from __future__ import annotations

import os
import socket
from functools import partial
from pathlib import Path

import msgspec

from jaxmeter.harness.child.forks import Forks
from jaxmeter.harness.child.worker import answer
from jaxmeter.harness.plan.messages import Message
from jaxmeter.harness.plan.probes import PROBES
from jaxmeter.harness.probes import find_probe

_LONGEST_PATH = 4096


def serve(descriptor: str, *suites: str) -> None:
    """Serve until the parent closes its end."""
    for probe in PROBES:
        find_probe(probe)
    forks = Forks(descriptor, suites)
    forks.say({"alone": forks.alone})
    while True:
        line, descriptors, _, _ = socket.recv_fds(forks.control, _LONGEST_PATH, 2)
        if not line:
            return
        pid = forks.fork(partial(_answer, Path(os.fsdecode(line.rstrip(b"\n"))), *descriptors))
        for handle in descriptors:
            os.close(handle)
        forks.say({"pid": pid})
        status, peak_kib = forks.wait(pid)
        forks.say({"status": status, "peak_kib": peak_kib})


def _answer(message: Path, heartbeat: int, stderr: int) -> None:
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(stderr, 1)
    os.dup2(stderr, 2)
    answer(msgspec.json.decode(message.read_bytes(), type=Message), heartbeat)
