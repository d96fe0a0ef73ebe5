"""Nights that push to a real S3 server, one of them slower; then all that a team reads, from the bucket alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from examples import a_week_of_nightlies as week
from jaxmeter.launch.options import UsageError
from jaxmeter.launch.request import choose_engine
from jaxmeter.reporting.store.stores import StoreError, open_store
from tests.end_to_end.conftest import CHECKOUT

pytestmark = pytest.mark.cloud

SLOWER_BY = 8
"""Steps more than the forty of one program: 20 %."""

MOST_BUSY = 4
"""First nights that a machine may be too busy for."""


def has_engine():
    """Whether containers can be run; where CI promises an engine, its lack is a failure and no skip."""
    try:
        engine, _ = choose_engine("container", os.environ)
    except UsageError:
        engine = None
    if engine is None and os.environ.get("JAXMETER_REQUIRE_ENGINE"):
        pytest.fail("no container engine")
    return engine is not None


@pytest.fixture
def nox(tmp_path):
    """Calls a session in the checkout; exit code and all that it said.

    A night has the environment of its session. The others have that of the tests: each of their own takes a minute.
    """
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))

    def run(session, *arguments):
        shared = () if session == "nightly" else ("--no-venv", "--no-install")
        command = [sys.executable, "-m", "nox", *shared, "-f", str(CHECKOUT / "noxfile.py"), "-s", session, "--"]
        ended = subprocess.run(
            [*command, *map(str, arguments)],
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        return ended.returncode, ended.stdout + ended.stderr

    return run


@pytest.fixture
def live(nox, bucket, tmp_path):
    """Lives three nights, the last of them slower; their verdicts and all that was said."""

    def night(measured, extra):
        week.write_suite(tmp_path, extra=extra)
        code, said = nox("nightly", "--store", bucket, *measured, "--verdict", tmp_path / "verdict.json")
        verdict = json.loads((tmp_path / "verdict.json").read_text())
        assert code == verdict["exit_code"], said
        return verdict, said

    def nights(runtime):
        measured = ("--runtime", runtime, "--out", tmp_path / "results", "--suites", tmp_path / "nightly.py", "--quick")
        for _ in range(MOST_BUSY):  # a night that is too busy is none that others are compared with
            first = night(measured, 0)
            if "too busy" not in first[0]["heading"]:
                break
        return list(zip(first, night(measured, 0), night(measured, SLOWER_BY), strict=True))

    return nights


def check_nights(verdicts, said, bucket):
    """The third night is slower than both others, which were fine; the bucket has all of them, with a verdict each."""
    assert [one["exit_code"] for one in verdicts] == [0, 0, 1], said
    first, second, third = (one["run"] for one in verdicts)
    assert [one["good"] for one in verdicts] == [True, True, False], said
    assert [(one["role"], one["baseline"]) for one in verdicts[2]["baselines"]] == [("last", second), ("pinned", first)]
    text = " ".join(said[2].split())
    assert f"Failed, compared with {second} (last good) and {first} (pinned): " in text
    assert f"{week.SLOWED} chain:jit" in text.partition("time: slower")[2]
    store = open_store(bucket)
    assert {f"{one}.json" for one in (first, second, third)} <= set(store.list_files("verdicts"))
    assert {first, second, third} < set(store.list_folders())
    return first, second, third


def test_containers_measure_nights_that_the_host_pushes_and_a_slower_one_is_found(live, bucket, s3, tmp_path):
    if not has_engine():
        pytest.skip("no container engine")

    verdicts, said = live("container")

    check_nights(verdicts, said, bucket)
    written = [path.read_bytes() for path in (tmp_path / "results").rglob("*") if path.is_file()]
    for secret in (s3["AWS_SECRET_ACCESS_KEY"], s3["AWS_ACCESS_KEY_ID"]):
        assert not any(secret in one for one in said)
        assert not any(secret.encode() in data for data in written)


def test_a_team_reads_nights_from_the_bucket_alone(live, nox, bucket, tmp_path, monkeypatch):
    runs = check_nights(*live("local"), bucket)

    # Another machine: nothing of these runs is here.
    monkeypatch.setenv("JAXMETER_CACHE", str(tmp_path / "another"))
    page, table = tmp_path / "page.html", tmp_path / "table.csv"
    assert nox("report", bucket, "--out", page)[0] == 0
    assert all(one in page.read_text() for one in runs)
    assert nox("report", "export", bucket, "--out", table)[0] == 0
    code, said = nox("report", "history", bucket, "--case", "chain*")
    assert (code, " runs, " in said) == (0, True), said
    assert nox("compare", f"{bucket}/{runs[1]}", f"{bucket}/{runs[2]}")[0] == 1
    measured = ("--runtime", "local", "--out", tmp_path / "results", "--suites", tmp_path / "nightly.py", "--quick")
    code, said = nox("gate", f"{bucket}/{runs[1]}", *measured)
    assert code == 1, said
    assert f"{week.SLOWED} chain:jit" in said.partition("time: slower")[2]


def test_a_night_whose_container_is_killed_is_gone_on_with(nox, bucket, tmp_path):
    if not has_engine():
        pytest.skip("no container engine")
    engine, _ = choose_engine("container", os.environ)
    week.write_suite(tmp_path, extra=0)
    measured = ("--runtime", "container", "--out", tmp_path / "results", "--suites", tmp_path / "nightly.py", "--quick")
    night = ("nightly", "--store", bucket, *measured, "--verdict", tmp_path / "verdict.json")

    with ThreadPoolExecutor(max_workers=1) as running:
        killed = running.submit(nox, *night)
        processes = wait_for_processes(tmp_path / "results", killed)
        (name,) = find_containers(engine)
        subprocess.run([engine.client, "kill", name], check=True, capture_output=True)
        code, said = killed.result()

    assert code not in (0, 1), said
    with pytest.raises(StoreError, match="no such bucket or folder"):  # nothing has reached it
        open_store(bucket).list_folders()
    kept = {path: path.read_bytes() for path in processes}

    code, said = nox(*night)

    assert code == json.loads((tmp_path / "verdict.json").read_text())["exit_code"], said
    assert code in (0, 3), said  # 3 where the machine is too busy for a first night
    assert {path: path.read_bytes() for path in kept} == kept
    (run,) = (name for name in open_store(bucket).list_folders() if name != "verdicts")
    assert run == processes[0].parents[3].name


def find_containers(engine):
    """Names of those that measure."""
    command = [engine.client, "ps", "--filter", "name=jaxmeter-", "--format", "{{.Names}}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def wait_for_processes(results, running):
    """The processes of the first rounds, once a second one is there of any case."""
    for _ in range(6000):
        found = sorted(results.glob("*/cases/*/processes/*-timing.json.gz"))  # without those that were replaced
        rounds = [path for path in found if len([one for one in found if one.parent == path.parent]) > 1]
        if rounds:
            return sorted({path.parent: path for path in reversed(found)}.values())
        assert not running.done(), running.result()
        time.sleep(0.05)
    raise AssertionError("no second process of a case within 300 s")
