"""The relations of a forked process to its parent and to the processes that it starts."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

_THREADS = Path("/proc/self/task")


def die_with_parent(parent: int) -> None:
    """Have the kernel end this process when its parent ends for any reason. Only on Linux.

    Args:
      parent: The parent's process id. If the parent has already ended, this process ends here.
    """
    _ask_kernel(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def offer_to_out_of_memory_killer() -> None:
    """Make the out-of-memory killer choose the measured process, not the process that writes the record."""
    try:
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    except OSError:  # not Linux, or not allowed: the kernel chooses
        return


def run_before(work: Callable[[], object]) -> None:
    """Do a piece of work in a forked process, and wait for its end. No backend of JAX may be initialised yet.

    Raises:
      ChildProcessError: The forked process failed.
    """
    parent, pid = os.getpid(), os.fork()
    if pid == 0:
        code = 1
        try:
            die_with_parent(parent)
            work()
            code = 0
        except BaseException:  # noqa: BLE001  whatever it was, the child must not go on with the parent's code
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    if status != 0:
        raise ChildProcessError(f"the process before it ended with status {os.waitstatus_to_exitcode(status)}")


def begin_session(parent: int) -> None:
    """Make this process the leader of a session, so that its descendants can be ended together with it.

    Args:
      parent: The process that forked this one.
    """
    os.setsid()
    die_with_parent(parent)
    offer_to_out_of_memory_killer()


def adopt_orphans() -> None:
    """Make orphaned descendants children of this process. Only on Linux."""
    _ask_kernel(_PR_SET_CHILD_SUBREAPER, 1)


def list_children() -> set[int]:
    """Return the process ids of this process's children; an empty set where the system does not list them."""
    with suppress(OSError):
        return {int(pid) for task in _THREADS.iterdir() for pid in (task / "children").read_text().split()}
    return set()


def end_children(kept: set[int]) -> None:
    """End all children except the kept ones, and their descendants: a detached process would disturb the next one."""
    while left := list_children() - kept:
        for pid in left:
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _ask_kernel(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value)
