"""Servers of buckets, each a process of its own on this machine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.record import RunFolder
from tests import samples

START_LIMIT_S = 60


@contextmanager
def serve(*command: str, port: int, log: Path) -> Iterator[str]:
    """A server for the time of a block; its address."""
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output) as server:
        try:
            _wait_for(port, server, log)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


def _wait_for(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_LIMIT_S
    while time.monotonic() < end and server.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=1)
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
        else:
            return
    pytest.fail(f"the server did not start:\n{log.read_text(errors='replace')}")


def find_port() -> int:
    """One that is free."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture(scope="session")
def s3(tmp_path_factory):
    """A real S3 server: the environment that clients need."""
    port = find_port()
    log = tmp_path_factory.mktemp("s3") / "log"
    with serve(sys.executable, "-m", "moto.server", "-p", str(port), port=port, log=log) as address:
        yield {
            "AWS_ENDPOINT_URL": address,
            "AWS_ACCESS_KEY_ID": "planted-key",
            "AWS_SECRET_ACCESS_KEY": "planted-secret",
            "AWS_DEFAULT_REGION": "us-east-1",
        }


@pytest.fixture
def bucket(s3, request, monkeypatch, tmp_path):
    """A fresh bucket, which this process and its children reach; its URL."""
    import fsspec

    for name, value in s3.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("JAXMETER_CACHE", str(tmp_path / "cache"))
    name = f"bucket-{abs(hash(request.node.name)) % 10**12}-{os.getpid()}"
    fsspec.filesystem("s3").mkdir(name)
    return f"s3://{name}/nightly"


@pytest.fixture
def make(tmp_path):
    """Writes a run that has ended."""

    def write(run_id: str = "a-run", place: str = "results", **changes) -> RunFolder:
        run = samples.run(run_id=run_id, **changes)
        return RunFolder(samples.write_run(tmp_path / place / run_id, run))

    return write
