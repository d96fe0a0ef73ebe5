"""What a forked process has to do with its parent and with what it starts itself."""

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
    """On Linux: the kernel ends this process when its parent ends, however that happens.

    Args:
      parent: Its process id. Where that has ended before the kernel was asked, this process ends here.
    """
    _ask_kernel(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def offer_to_out_of_memory_killer() -> None:
    """The measured process shall be chosen, not the one that keeps the record."""
    try:
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    except OSError:  # not Linux, or not allowed: the kernel's own choice stands
        return


def run_before(work: Callable[[], object]) -> None:
    """Does a piece of work in a forked process, and waits for that one's end. No backend of jax may have begun yet.

    Raises:
      ChildProcessError: It did not end well.
    """
    parent, pid = os.getpid(), os.fork()
    if pid == 0:
        code = 1
        try:
            die_with_parent(parent)
            work()
            code = 0
        except BaseException:  # noqa: BLE001  whatever it was, the parent's own process shall not go on from here
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    if status != 0:
        raise ChildProcessError(f"the process before it ended with status {os.waitstatus_to_exitcode(status)}")


def begin_session(parent: int) -> None:
    """Makes this process a session of its own, so that ending it ends whatever it has started.

    Args:
      parent: The process that has forked it.
    """
    os.setsid()
    die_with_parent(parent)
    offer_to_out_of_memory_killer()


def adopt_orphans() -> None:
    """On Linux: what is started below this process becomes its child once its own parent ends."""
    _ask_kernel(_PR_SET_CHILD_SUBREAPER, 1)


def list_children() -> set[int]:
    """The children of this process; none where the system does not tell."""
    with suppress(OSError):
        return {int(pid) for task in _THREADS.iterdir() for pid in (task / "children").read_text().split()}
    return set()


def end_children(kept: set[int]) -> None:
    """Ends all children but these, and theirs: what a process has detached from itself would run beside the next."""
    while left := list_children() - kept:
        for pid in left:
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _ask_kernel(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value)
