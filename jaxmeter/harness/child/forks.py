"""What both fork servers are: a process that imports jax and suites once, and forks a fresh one for each request.

`server.py` answers a run, `arm.py` a measuring process that takes turns with it. The parent starts either
(parent/fork_client.py) with the number of a socket, says nothing more than it has to, and ends them by closing it.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress

import jax  # noqa: F401  imported before forking: that is the point of this process
import msgspec

from jaxmeter.harness.child.family import adopt_orphans, begin_session, end_children, list_children
from jaxmeter.harness.child.preload import import_early, import_suites
from jaxmeter.harness.machine.own_fault import EXIT_CODE, is_disk_full


class Forks:
    """The processes that a server forks, one after the other. No backend has begun where they are forked.

    Args:
      descriptor: The number of the parent's socket.
      suites: What is imported too, where it can be.

    Attributes:
      control: The parent's socket. No process holds it, so whoever waits at its other end learns of the server's end.
      alone: Why every process has to import the suites itself, and what to do about it; empty where none has to.
    """

    def __init__(self, descriptor: str, suites: Sequence[str]) -> None:
        self.control = socket.socket(fileno=int(descriptor))
        self.control.set_inheritable(False)
        adopt_orphans()
        import_early()
        self.alone = import_suites(suites)
        gc.collect()
        gc.freeze()  # imported modules are never garbage: no child must search them again
        self._own = list_children()  # suites may have started some for all processes

    def say(self, facts: object) -> None:
        """Write a line to the parent."""
        self.control.sendall(msgspec.json.encode(facts) + b"\n")

    def fork(self, work: Callable[[], None]) -> int:
        """Fork a process that begins a session of its own, does this work, and ends; return its id."""
        server = os.getpid()
        pid = os.fork()
        if pid != 0:
            return pid
        code = 1
        try:
            self.control.close()
            begin_session(server)
            work()
            code = 0
        except BaseException as error:  # noqa: BLE001  the parent must read any error
            code = EXIT_CODE if is_disk_full(error) else 1
            with suppress(OSError):  # a full disk has no room for words
                traceback.print_exc()
        finally:
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError):
                    stream.flush()
            os._exit(code)  # no teardown: a device's threads may hang in it, and the answer is written

    def wait(self, pid: int) -> tuple[int, int]:
        """Wait for a process's end, end what it has started, and return its wait status and its peak memory in KiB."""
        _, status, usage = os.wait4(pid, 0)
        end_children(kept=self._own)
        return status, usage.ru_maxrss
