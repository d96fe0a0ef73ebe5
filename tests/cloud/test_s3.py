"""A real S3 server process: pushing, reading, racing, and what it refuses."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from jaxmeter.reporting.store.fetch import fetch
from jaxmeter.reporting.store.push import list_local, push
from jaxmeter.reporting.store.stores import open_store
from tests.end_to_end.conftest import CHECKOUT, run_program

pytestmark = pytest.mark.cloud

WRITERS = 16


report = partial(run_program, CHECKOUT)
"""`jaxmeter ARGUMENTS` to its end."""


def read_all(store, run):
    """What a store holds of the files of a run."""
    return {path: store.read("a-run", *path.split("/")) for path in list_local(run.path)}


def read_here(run, folder=None):
    return {path: ((folder or run.path) / path).read_bytes() for path in list_local(run.path)}


def test_a_run_is_pushed_and_read_back_as_it_is_here(make, bucket):
    run = make()

    pushed = push(run, bucket)

    store = open_store(bucket)
    assert store.list_files("a-run") == list_local(run.path)
    assert read_all(store, run) == read_here(run)
    assert [folder.name for folder in fetch(bucket).folders] == ["a-run"]
    assert fetch(pushed.url).folders == fetch(bucket).folders


def test_the_server_says_when_it_received_a_file(make, bucket):
    before = datetime.now(UTC) - timedelta(seconds=2)
    push(make(started="2131-01-02T03:04:05Z"), bucket)

    store = open_store(bucket)

    stored = store.find("a-run")["run.json"]
    assert stored == store.look_up("a-run", "run.json")
    assert before < stored.changed < datetime.now(UTC) + timedelta(seconds=2)
    assert store.look_up("a-run") is store.look_up("a-run", "none") is store.read_clock() is None


def test_a_key_that_is_no_name_of_a_file_does_not_keep_the_run_from_being_fetched(make, bucket):
    run = make()
    push(run, bucket)
    files = open_store(bucket).files
    for key in ("n" * 300, "run.json/below", "cases/a-key", "cases/a-key/below"):
        files.pipe_file(f"{bucket.removeprefix('s3://')}/a-run/{key}", b"x")

    ended = report("fetch", f"{bucket}/a-run")

    folder = Path(ended.stdout.strip())
    refused = [line.partition(": no file here can have this name (")[0] for line in ended.stderr.splitlines()]
    assert (ended.returncode, "JAXMETER_CACHE" in ended.stderr) == (3, False), ended.stderr
    assert f"error: {bucket}/a-run/{'n' * 300}" in refused
    assert f"error: {bucket}/a-run/run.json/below" in refused
    assert read_here(run, folder) == read_here(run)


def test_of_processes_that_push_one_id_at_once_one_wins(make, bucket, tmp_path):
    runs = [make(place=f"results-{number}", started=f"2026-01-02T03:04:{number:02}Z") for number in range(WRITERS)]
    command = [sys.executable, "-m", "jaxmeter", "push"]
    writers = [
        subprocess.Popen([*command, run.path, bucket], cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for run in runs
    ]

    ended = [(writer.communicate(timeout=180)[1].decode(), writer.returncode) for writer in writers]

    assert sorted(code for _, code in ended) == [0] + [2] * (WRITERS - 1), ended
    assert all("another run has this id" in said for said, code in ended if code)
    (winner,) = [run for run, (_, code) in zip(runs, ended, strict=True) if code == 0]
    assert read_all(open_store(bucket), winner) == read_here(winner)


def check_refused(ended, code, said):
    assert ended.returncode == code, ended.stderr
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr


def test_what_cannot_be_reached_is_said_and_a_server_that_does_not_answer_is_no_fault_of_the_user(
    make, bucket, monkeypatch, tmp_path
):
    missing = "s3://no-such-bucket-here/a"
    for ended in (report("push", make().path, missing), report("report", missing)):
        check_refused(ended, 2, f"{missing}: no such bucket or folder")
    with monkeypatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        check_refused(report("report", bucket), 3, "cannot be reached")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    check_refused(report("report", bucket), 2, "no usable credentials")


def test_keys_are_in_no_output_page_record_or_cache(make, bucket, tmp_path):
    run = make()
    ended = [report("push", run.path, bucket), report("report", bucket, "--out", tmp_path / "page.html")]

    said = "".join(one.stdout + one.stderr for one in ended)
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    store = open_store(bucket)
    written += [store.read("a-run", *path.split("/")) for path in store.list_files("a-run")]
    for secret in ("planted-key", "planted-secret"):
        assert secret not in said
        assert not any(secret.encode() in data for data in written)
