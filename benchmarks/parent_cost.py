"""What the run's own processes take from the program that is measured: shares of a core while a measuring process runs.

    python -m benchmarks.parent_cost [PROCESSES]

A few cases are timed twice, once with plain lines and once with the live bar on a pseudo-terminal. Meanwhile the
processor time of the parent and of the fork server is read from /proc (Linux), and added up over all stretches in which
one and the same measuring process lived.
"""

from __future__ import annotations

import itertools
import os
import pty
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.here import describe_here

PROCESSES = 8
CASES = ("selu[dtype=float32,n=1000000]", "matmul[dtype=float32,n=512,precision=default]", "cumulative_sum[n=100]")
SAMPLE_EVERY_S = 0.05
LARGEST_SHARE = 0.01
"""The goal, of the parent and the server together."""

_NANOSECOND = 1e-9


@dataclass(frozen=True)
class Moment:
    """What was seen at one time.

    Args:
      measuring: The measuring process that lived; None where there was none.
      parent_s, server_s: Processor time until then.
    """

    time_s: float
    measuring: int | None
    parent_s: float
    server_s: float


def main() -> int:
    """Prints the shares of both displays; 1 where one misses the goal."""
    processes = int(sys.argv[1]) if len(sys.argv) > 1 else PROCESSES
    print(f"{len(CASES)} cases, {processes} processes each; {describe_here('jax', 'rich')}")
    worst = 0.0
    for title, live in (("plain lines", False), ("live bar", True)):
        with tempfile.TemporaryDirectory() as folder:
            moments = watch_run(Path(folder), processes, live=live)
        together_s, parent, server = add_up(moments)
        print(
            f"{title}: parent {100 * parent:.2f} %, fork server {100 * server:.2f} % of a core, over "
            f"{together_s:.1f} s of measuring processes (goal: {100 * LARGEST_SHARE:.0f} % together)",
            flush=True,
        )
        worst = max(worst, parent + server)
    return int(worst > LARGEST_SHARE)


def add_up(moments: Sequence[Moment]) -> tuple[float, float, float]:
    """Seconds in which a measuring process lived, and the shares of a core that parent and server used meanwhile."""
    pairs = [
        (one, other)
        for one, other in itertools.pairwise(moments)
        if one.measuring is not None and one.measuring == other.measuring
    ]
    together_s = sum(other.time_s - one.time_s for one, other in pairs)
    if not together_s:
        raise RuntimeError("no measuring process was seen; is this Linux, with /proc?")
    parent_s = sum(other.parent_s - one.parent_s for one, other in pairs)
    server_s = sum(other.server_s - one.server_s for one, other in pairs)
    return together_s, parent_s / together_s, server_s / together_s


def watch_run(folder: Path, processes: int, *, live: bool) -> list[Moment]:
    """Runs the harness and looks at it until it ends."""
    command = [sys.executable, "-m", "jaxmeter", "run", "--probe", "timing", "--processes", str(processes)]
    chosen = [word for case in CASES for word in ("--select", case)]
    screen, terminal = pty.openpty() if live else (None, None)
    output = subprocess.DEVNULL if terminal is None else terminal
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40"}
    run = subprocess.Popen(
        [*command, *chosen, "--out", str(folder)], stdin=output, stdout=output, stderr=output, env=environment
    )
    if screen is not None:
        threading.Thread(target=_drain, args=(screen,), daemon=True).start()
    moments = []
    while run.poll() is None:
        with suppress(OSError, ValueError):  # a process ended while it was looked at
            moments.append(_look(run.pid))
        time.sleep(SAMPLE_EVERY_S)
    for descriptor in (terminal, screen):
        if descriptor is not None:
            os.close(descriptor)
    if run.returncode:
        raise SystemExit(f"the run ended with {run.returncode}")
    return moments


def _drain(screen: int) -> None:
    """Takes what a terminal would show, so that writing to it never waits."""
    with suppress(OSError):
        while os.read(screen, 65536):
            pass


def _look(parent: int) -> Moment:
    servers = [child for child in _children(parent) if b"jaxmeter.harness.child.server" in _read(child, "cmdline")]
    measuring = [child for server in servers for child in _children(server)]
    return Moment(
        time_s=time.monotonic(),
        measuring=measuring[0] if measuring else None,
        parent_s=_processor_s([parent]),
        server_s=_processor_s(servers),
    )


def _children(process: int) -> list[int]:
    return [int(word) for word in _read(process, f"task/{process}/children").split()]


def _processor_s(processes: Iterable[int]) -> float:
    """Of all their threads, so far: nanoseconds, where `stat` counts in steps of 10 ms."""
    threads = [path for process in processes for path in Path(f"/proc/{process}/task").iterdir()]
    return _NANOSECOND * sum(int((path / "schedstat").read_bytes().split()[0]) for path in threads)


def _read(process: int, name: str) -> bytes:
    return Path(f"/proc/{process}/{name}").read_bytes()


if __name__ == "__main__":
    sys.exit(main())
