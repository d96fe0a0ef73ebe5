"""A real S3 server process: pushing, reading, racing, and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from jaxmeter.reporting.store.fetch import fetch
from jaxmeter.reporting.store.push import list_local, push
from jaxmeter.reporting.store.stores import open_store
from tests.end_to_end.conftest import CHECKOUT

pytestmark = pytest.mark.cloud

WRITERS = 16


def report(*arguments):
    """`jaxmeter ARGUMENTS` to its end."""
    command = [sys.executable, "-m", "jaxmeter", *map(str, arguments)]
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=120, check=False)


def test_a_run_is_pushed_and_read_back_as_it_is_here(make, bucket):
    run = make()

    pushed = push(run, bucket)

    store = open_store(bucket)
    assert store.list_files("a-run") == list_local(run.path)
    assert {path: store.read("a-run", *path.split("/")) for path in list_local(run.path)} == {
        path: (run.path / path).read_bytes() for path in list_local(run.path)
    }
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
    assert {path: (folder / path).read_bytes() for path in list_local(run.path)} == {
        path: (run.path / path).read_bytes() for path in list_local(run.path)
    }


def test_pushing_again_sends_nothing(make, bucket):
    first, again = (report("push", make().path, bucket) for _ in range(2))

    assert (first.returncode, again.returncode) == (0, 0), first.stderr + again.stderr
    assert "; sent " in first.stdout
    assert again.stdout.rstrip().endswith("; was there already")


def test_captures_are_pushed_only_where_they_are_asked_for_and_stay_then(make, bucket):
    run = make()
    capture = run.path / "cases" / "00" / "trace" / "selu-jit" / "host.xplane.pb"
    capture.parent.mkdir(parents=True)
    capture.write_bytes(b"12345")

    without, adding, again = (report("push", run.path, bucket, *words) for words in ((), ("--with-captures",), ()))

    assert "; 1 capture (5" in without.stdout
    assert adding.stdout.rstrip().endswith("; sent 1 file")
    assert again.stdout.rstrip().endswith("; was there already")
    assert open_store(bucket).list_files("a-run") == list_local(run.path)


def test_commands_read_a_bucket_as_they_read_folders(make, bucket, tmp_path):
    for number in (1, 2):
        push(make(f"run-{number}", started=f"2026-01-0{number}T00:00:00Z"), bucket)

    page, table = tmp_path / "page.html", tmp_path / "table.csv"
    ended = [
        report("report", bucket, "--out", page),
        report("export", bucket, "--out", table),
        report("compare", f"{bucket}/run-1", f"{bucket}/run-2"),
        report("history", bucket, "--json"),
    ]

    assert [one.returncode for one in ended] == [0, 0, 0, 0], [one.stderr for one in ended]
    assert "run-1" in page.read_text()
    assert {line.split(",")[0] for line in table.read_text().splitlines()[1:]} == {"run-1", "run-2"}
    assert json.loads(ended[3].stdout)["machines"][0]["runs"] == ["run-1", "run-2"]


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
    store = open_store(bucket)
    assert {path: store.read("a-run", *path.split("/")) for path in list_local(winner.path)} == {
        path: (winner.path / path).read_bytes() for path in list_local(winner.path)
    }


def test_a_bucket_that_is_not_there_is_said(make, bucket):
    pushed = report("push", make().path, "s3://no-such-bucket-here/a")
    read = report("report", "s3://no-such-bucket-here/a")

    for ended in (pushed, read):
        assert ended.returncode == 2, ended.stderr
        assert "s3://no-such-bucket-here/a: no such bucket or folder" in ended.stderr
        assert "Traceback" not in ended.stderr


def test_a_server_that_does_not_answer_is_no_fault_of_the_user(make, bucket, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")

    ended = report("report", bucket)

    assert ended.returncode == 3, ended.stderr
    assert "cannot be reached" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_without_credentials_it_says_so(make, bucket, monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")

    ended = report("report", bucket)

    assert ended.returncode == 2, ended.stderr
    assert "no usable credentials" in ended.stderr
    assert "Traceback" not in ended.stderr


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
