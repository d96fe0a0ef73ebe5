"""A real xprof that serves a folder of captures, in a process of its own."""

from __future__ import annotations

import gzip
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
RUNS = "/data/plugin/profile/runs"


@contextmanager
def serve(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The process and its port, from the first answer on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "jaxmeter.harness.traces.serve", str(folder), "--port", str(port)]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            until = time.monotonic() + 60
            while not answers(port):
                assert server.poll() is None, "xprof ended"
                assert time.monotonic() < until, "xprof does not answer"
                time.sleep(0.2)
            yield server, port
        finally:
            server.terminate()


def answers(port: int) -> bool:
    try:
        fetch(port, RUNS)
    except OSError:
        return False
    return True


def fetch(port: int, path: str) -> bytes:
    """What a path of the server holds."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
        data = answer.read()
        return gzip.decompress(data) if answer.headers.get("Content-Encoding") == "gzip" else data
