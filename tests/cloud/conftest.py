"""Buckets of servers on this machine, and runs to push there."""

from __future__ import annotations

import os
import sys

import pytest

from jaxmeter.harness.record import RunFolder
from tests import samples
from tests.cloud.servers import find_port, make_credentials, serve


@pytest.fixture(scope="session")
def s3(tmp_path_factory):
    """A real S3 server: the environment that clients need."""
    port = find_port()
    log = tmp_path_factory.mktemp("s3") / "log"
    with serve(sys.executable, "-m", "tests.cloud.s3_server", str(port), port=port, log=log) as address:
        yield make_credentials(address)


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
