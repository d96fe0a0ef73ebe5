"""An emulator of Google's storage: paths and reading. It does not keep to create-only, as the real one does."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta

import pytest

from jaxmeter.reporting.store.fetch import fetch
from jaxmeter.reporting.store.push import list_local, push
from jaxmeter.reporting.store.stores import open_store
from tests.cloud.servers import find_port, serve

pytestmark = pytest.mark.cloud


@pytest.fixture
def gcs(tmp_path, monkeypatch):
    """A store in a fresh bucket of an emulator."""
    port = find_port()
    command = (
        "from gcp_storage_emulator.server import create_server as make; make('127.0.0.1', {}, True, 'a-bucket').run()"
    )
    with serve(sys.executable, "-c", command.format(port), port=port, log=tmp_path / "log") as address:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", address)
        monkeypatch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
        monkeypatch.setenv("JAXMETER_CACHE", str(tmp_path / "cache"))
        yield "gs://a-bucket/nightly"


def test_a_run_is_pushed_and_read_back(make, gcs):
    run = make()

    push(run, gcs)

    assert open_store(gcs).list_files("a-run") == list_local(run.path)
    stored = open_store(gcs).find("a-run")["run.json"]
    assert abs(datetime.now(UTC) - stored.changed) < timedelta(minutes=1)
    (folder,) = fetch(gcs).folders
    assert (folder / "run.json").read_bytes() == run.mark.read_bytes()
