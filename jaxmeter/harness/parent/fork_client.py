"""The parent's side of a fork server: starts it and its processes, listens to them, ends those that hang. No jax."""

from __future__ import annotations

import errno
import json
import math
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from jaxmeter.harness.machine.environment import make_private
from jaxmeter.harness.machine.own_fault import EXIT_CODE
from jaxmeter.harness.parent.written import Warnings
from jaxmeter.harness.plan.messages import CODE_FOLDER, ERRORS, Answer, Heartbeat, Message
from jaxmeter.harness.record import write_bytes

START_LIMIT_S = 120.0


class Overran(StrEnum):
    """What of a run's budget a process took too much of, so that the harness ended it."""

    STAGE = "its share for one stage"
    BUDGET = "the budget"


@dataclass(frozen=True)
class Limits:
    """Seconds; infinite where nothing limits them.

    Args:
      stage_limit_s: The longest silence in a stage of a variant, whatever the budget.
      stage_share_s: The longest silence in a stage of a variant, by the budget.
      end_s: From the beginning of the process to its end, by the budget.
    """

    stage_limit_s: float
    stage_share_s: float = math.inf
    end_s: float = math.inf

    def find_deadline(self, start: float, since: float, last: Heartbeat) -> tuple[float, Overran | None]:
        """Return when a process has to be ended unless it says something before, and which part of a budget says so.

        Args:
          start: When it began.
          since: When its last heartbeat came.
        """
        moments: list[tuple[float, Overran | None]] = [
            (since + silence_limit_s(last, self.stage_limit_s), None),
            (start + self.end_s, Overran.BUDGET),
        ]
        if last.variant is not None:  # before any variant, none has caused it
            moments.append((since + self.stage_share_s, Overran.STAGE))
        return min(moments, key=lambda moment: moment[0])


def silence_limit_s(last: Heartbeat, stage_limit_s: float) -> float:
    """The longest silence after a heartbeat: starting and inputs, before any variant, get START_LIMIT_S at least."""
    return stage_limit_s if last.variant else max(stage_limit_s, START_LIMIT_S)


_BEGIN = Path(__file__).parents[1] / "child/begin.py"


@dataclass(frozen=True)
class Server:
    """A fork server.

    Args:
      control: The socket to it, with which it ends.
      process: Its process; None of one in another container.
    """

    control: socket.socket
    process: subprocess.Popen[bytes] | None = None

    def read_line(self, limit_s: float | None = None) -> bytes:
        """Return what it says next.

        Raises:
          EOFError: It has ended.
          TimeoutError: It was silent for longer than the limit.
        """
        self.control.settimeout(limit_s)
        line = b""
        while not line.endswith(b"\n"):
            data = self.control.recv(1)
            if not data:
                raise EOFError("it has ended")
            line += data
        return line

    def is_alive(self) -> bool:
        """Return whether it has not ended, where it has nothing to say: all that can be read then is its end."""
        ready, _, _ = select.select([self.control], [], [], 0)
        return not ready

    def end(self) -> None:
        """End it with all that it has started."""
        self.control.close()
        if self.process is not None:
            with suppress(ProcessLookupError, PermissionError):  # macOS refuses where only a zombie is left
                os.killpg(self.process.pid, signal.SIGKILL)  # the kernel ends its children with it
            self.process.wait()


def start_server(
    control: socket.socket,
    python: str,
    paths: str,
    module: str,
    arguments: Sequence[str],
    variables: Mapping[str, str],
    errors: Path,
    folder: str | None = None,
) -> subprocess.Popen[bytes]:
    """Start a server, which ends with this process however that ends.

    Args:
      control: The server's end of the socket to whoever uses it.
      python: Its interpreter.
      paths: Where it imports from; where empty, from the interpreter's own paths.
      module: Whose `serve` takes the number of that socket and the arguments.
      errors: The file of what it and its processes print.
      folder: Its working folder; by default that of this process.
    """
    with errors.open("wb") as stderr:
        return subprocess.Popen(
            # Unbuffered: what a process prints last is kept, also where its suite ends it without flushing.
            [python, "-u", str(_BEGIN), paths, str(os.getpid()), module, str(control.fileno()), *arguments],
            pass_fds=[control.fileno()],
            env=variables,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=stderr,
            stderr=stderr,
            start_new_session=True,  # a Ctrl-C of the terminal is the parent's to handle
        )


def start_arm(
    control: socket.socket,
    python: str,
    folder: Path,
    variables: Mapping[str, str],
    suites: Sequence[str],
    checkout: tuple[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start the server of an environment that takes turns, see `start_server`.

    Args:
      folder: With our package in CODE_FOLDER; where ERRORS and the socket of its processes appear.
      checkout: As in `StartArm`.
    """
    paths = [str(folder / CODE_FOLDER), *filter(None, [variables.get("PYTHONPATH")])]
    variables = {**variables, "PYTHONPATH": os.pathsep.join(paths)}
    module, there = ("arm", None) if checkout is None else ("checkout", checkout[1])
    arguments = (str(folder / "socket"), *(checkout or ()), *suites)
    return start_server(
        control, python, "", f"jaxmeter.harness.child.{module}", arguments, variables, folder / ERRORS, there
    )


STDERR_KEPT = 4000
LOW_BYTES = 8 * 2**20
"""Less room than this explains an end without words: one capture of a trace takes some MiB."""

_READ = 65536
"""Bytes that a pipe of Linux holds."""

_LONGEST_BEAT = 4096

LISTEN_S = 0.05
"""Interval at which heartbeats are read: 20 times a second had no measurable cost. The pipe still contains what a
process wrote before it died."""


class ServerError(Exception):
    """The measuring processes cannot be started as asked; the message holds what Python said. Exit code 2."""


class ServerLostError(ServerError):
    """The machine is in the way: it is too slow, or something has stopped or ended a process. Exit code 3."""


@dataclass(frozen=True)
class Ended:
    """How a process ended.

    Args:
      answer: What it wrote, or None when it died before.
      last: Its last heartbeat.
      signal: The signal that ended it, or None.
      timed_out: Whether the harness ended it, for being silent longer than allowed.
      code: Its exit code, or None when a signal ended it.
      stderr: The end of what it wrote there.
      peak_bytes: The most memory that it held.
      overran: What of the budget it took too much of, where it timed out by that.
      stage_s: How long its last stage had taken.
    """

    last: Heartbeat
    signal: int | None
    timed_out: bool
    code: int | None
    peak_bytes: int
    answer: Answer | None = None
    stderr: str = ""
    overran: Overran | None = None
    stage_s: float = 0.0


def raise_if_disk_full(ended: Ended, folder: Path) -> None:
    """Raise an error if a process ended because the disk is full: its variants have no fault, and are measured later.

    Raises:
      OSError: The process reported a full disk; or it reported nothing, and the folder or that of temporary files is
        full.
    """
    words = ended.stderr.splitlines()[-1:]
    if ended.code == EXIT_CODE:
        raise OSError(errno.ENOSPC, *words or [os.strerror(errno.ENOSPC)], str(folder))
    silent = ended.answer is None and not ended.timed_out and (ended.signal is not None or not words)
    for place in (folder, Path(tempfile.gettempdir())) if silent else ():
        if (free := shutil.disk_usage(place).free) < LOW_BYTES:
            raise OSError(errno.ENOSPC, f"a process ended without words, and {free} bytes are free", str(place))


class ForkServer:
    """A process that has imported jax and forks the others. Use as a context manager.

    Args:
      variables: The environment of every process.
      scratch: A folder for messages and answers.
      suites: What it imports too, where it can; else every process does so again.
    Attributes:
      alone: Once started: why every process imports the suites again, and what to do about it; empty where none does.
      warnings: What libraries warned of in it and in its processes so far.
    """

    def __init__(self, variables: Mapping[str, str], scratch: Path, suites: tuple[str, ...] = ()) -> None:
        self._variables = dict(variables)
        self._scratch = scratch
        self._suites = suites
        self.alone = ""
        self.warnings = Warnings()
        self._count = 0
        self._server: Server | None = None
        self._child: int | None = None

    def __enter__(self) -> Self:
        self._scratch.mkdir(parents=True, exist_ok=True)
        self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def run(
        self,
        make: Callable[[str], Message],
        *,
        stage_limit_s: float,
        stage_share_s: float = math.inf,
        end_s: float = math.inf,
        on_beat: Callable[[Heartbeat], None] = lambda beat: None,
    ) -> Ended:
        """Runs one process to its end.

        Args:
          make: Gets the path where the answer goes, returns the message.
          stage_limit_s, stage_share_s, end_s: See `Limits`.
        Raises:
          ServerError, ServerLostError: No process can be started.
          OSError: The disk is full, for the process or here.
        """
        self._count += 1
        place = self._scratch / f"{self._count:05d}"
        result, errors = place.with_suffix(".answer"), place.with_suffix(".stderr")
        write_bytes(place.with_suffix(".message"), msgspec.json.encode(make(str(result))), lasting=False)
        limits = Limits(stage_limit_s, stage_share_s, end_s)
        try:
            ended = self._run(place.with_suffix(".message"), errors, limits, on_beat)
            self.warnings.add_file(errors)
            words = make_private(_tail(errors, 2 * STDERR_KEPT))[-STDERR_KEPT:]
            ended = replace(ended, answer=_read_answer(result), stderr=words)
        finally:
            for path in (place.with_suffix(".message"), result, errors):
                path.unlink(missing_ok=True)
        raise_if_disk_full(ended, self._scratch)
        return ended

    def _run(self, message: Path, errors: Path, limits: Limits, on_beat: Callable[[Heartbeat], None]) -> Ended:
        """Run a process, and return how it ended, without what it has written."""
        reader, writer = os.pipe()
        try:
            with errors.open("wb") as stderr:
                self._ask(message, writer, stderr.fileno())
            os.close(writer)
            writer = -1
            return self._listen(reader, limits, on_beat)
        finally:
            os.close(reader)
            if writer >= 0:
                os.close(writer)

    def _ask(self, message: Path, heartbeat: int, stderr: int) -> None:
        line = os.fsencode(str(message)) + b"\n"
        for attempt in (1, 2):
            try:
                assert self._server is not None
                socket.send_fds(self._server.control, [line], [heartbeat, stderr])
                self._child = json.loads(self._server.read_line(START_LIMIT_S))["pid"]
                return
            except (OSError, EOFError) as error:  # the server itself was ended or stopped: start another, once
                if attempt == 2:
                    raise ServerLostError(f"the fork server cannot be reached: {error}") from error
                self._stop()
                self._start()

    def _listen(self, reader: int, limits: Limits, on_beat: Callable[[Heartbeat], None]) -> Ended:
        """Follows the child's heartbeats until the server says that it ended."""
        assert self._server is not None
        last, buffer, timed_out = Heartbeat(None, "start"), b"", False
        os.set_blocking(reader, False)
        start = since = time.monotonic()
        deadline, overran = limits.find_deadline(start, since, last)
        while True:
            wait_s = min(LISTEN_S, deadline - time.monotonic())
            # Not for the pipe too: whatever is timed would wake this process every 2 ms, on the cores that it needs.
            ended, _, _ = select.select([self._server.control], [], [], max(0.0, wait_s))
            *lines, buffer = (buffer + _read_now(reader)).split(b"\n")
            buffer = buffer[-_LONGEST_BEAT:]
            if beats := [beat for line in lines if (beat := _read_beat(line)) is not None]:
                last = beats[-1]
                on_beat(last)
                if not timed_out:
                    since = time.monotonic()
                    deadline, overran = limits.find_deadline(start, since, last)
            if ended:
                report, stage_s = self._wait_for_end(), time.monotonic() - since
                status = report.get("status", signal.SIGKILL)
                return Ended(
                    last=last,
                    signal=os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
                    timed_out=timed_out,
                    code=os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
                    peak_bytes=report.get("peak_kib", 0) * 1024,
                    overran=overran if timed_out else None,
                    stage_s=stage_s,
                )
            if time.monotonic() < deadline:
                continue
            if timed_out:
                raise ServerLostError(self._explain_silence())
            timed_out = True
            self._end_child()
            deadline = time.monotonic() + START_LIMIT_S

    def _explain_silence(self) -> str:
        """Return why nobody has said that the child has ended, long after it was sent SIGKILL."""
        assert self._server is not None
        assert self._child is not None
        if self._server.process is not None and _has_ended(self._child):
            server = self._server.process.pid
            return (
                f"the fork server (process {server}) has not answered for {START_LIMIT_S:g} s: it was stopped, or the "
                "machine is too busy; find out why, then continue with --resume"
            )
        return f"process {self._child} does not end, even after SIGKILL"

    def _wait_for_end(self) -> dict[str, int]:
        assert self._server is not None
        try:
            heard: dict[str, int] = json.loads(self._server.read_line())
            return heard
        except EOFError:  # the server was ended, and with it the child
            return {}
        finally:
            self._end_child()  # what the child itself started
            self._child = None

    def _start(self) -> None:
        errors = self._scratch / "server.stderr"
        paths = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
        control, theirs = socket.socketpair()
        with theirs:
            process = start_server(
                theirs, sys.executable, paths, "jaxmeter.harness.child.server", self._suites, self._variables, errors
            )
        self._server = Server(control, process)
        try:
            self.alone = json.loads(self._server.read_line(START_LIMIT_S))["alone"]
        except (EOFError, OSError) as error:
            code = None if isinstance(error, TimeoutError) else process.wait(START_LIMIT_S)
            self._stop()
            if code is None:
                raise ServerLostError(
                    f"the measuring process did not start within {START_LIMIT_S:.0f} s: something has stopped it, or "
                    f"the machine is too slow; try again\n{_tail(errors)}"
                ) from error
            if code < 0:
                raise ServerLostError(
                    f"the measuring process was ended by signal {-code} while it started, which the harness did not "
                    f"send; try again\n{_tail(errors)}"
                ) from error
            raise ServerError(f"the measuring process cannot start: {error}\n{_tail(errors)}") from error
        self.warnings.add_file(errors)

    def _stop(self) -> None:
        self._end_child()
        if self._server is not None:
            self._server.end()
            self._server = None

    def _end_child(self) -> None:
        if self._child is None:
            return
        try:
            os.killpg(self._child, signal.SIGKILL)
        except ProcessLookupError:  # it has ended, and left nothing behind
            return
        except PermissionError:  # macOS says so of a group that only holds a zombie
            return


def _has_ended(process: int) -> bool:
    """Return whether a process is gone, or ended and its parent has not asked for its status yet."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return sys.platform == "linux"
    return stat.rpartition(")")[2].split()[0] in ("Z", "X")


def _read_now(pipe: int) -> bytes:
    """Return the current content of a pipe, and no more: a process that floods it must not block this one."""
    with suppress(BlockingIOError):
        return os.read(pipe, _READ)
    return b""


def _read_beat(line: bytes) -> Heartbeat | None:
    """A line as a heartbeat; None of any other, since a suite's code may write into any file that is open."""
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        return Heartbeat(*msgspec.json.decode(line, type=tuple[str | None, str]))
    return None


def _read_answer(path: Path) -> Answer | None:
    try:
        answer: Answer = msgspec.json.decode(path.read_bytes(), type=Answer)
        return answer
    except FileNotFoundError:
        return None


def _tail(path: Path, size: int = STDERR_KEPT) -> str:
    """Return the end of a file. Of what is made private, more than is kept: half of a secret is not recognised."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - size))
            return file.read(size).decode("utf8", "replace").strip()
    except FileNotFoundError:
        return ""
