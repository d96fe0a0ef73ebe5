"""Nights that push to a real S3 server, one of them slower; then all that a team reads, from the bucket alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from examples import a_week_of_nightlies as week
from launcher.options import UsageError
from launcher.runtime import choose_engine
from reporting.store.places import open_store
from tests.end_to_end.conftest import CHECKOUT

pytestmark = pytest.mark.cloud

SLOWER_BY = 8
"""Steps more than the forty of one program: 20 %."""


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
    """Calls a session in the checkout; exit code and all that it said."""

    def run(session, *arguments):
        command = [sys.executable, "-m", "nox", "-f", str(CHECKOUT / "noxfile.py"), "-s", session, "--"]
        ended = subprocess.run(
            [*command, *map(str, arguments)], capture_output=True, text=True, timeout=900, check=False
        )
        return ended.returncode, ended.stdout + ended.stderr

    return run


@pytest.mark.parametrize("runtime", ["local", "container"])
def test_a_slower_night_is_found_and_a_team_reads_all_of_it_from_the_bucket(
    runtime, nox, bucket, s3, tmp_path, monkeypatch
):
    if runtime == "container" and not has_engine():
        pytest.skip("no container engine")
    suite, out = tmp_path / "nightly.py", tmp_path / "results"
    measured = ("--runtime", runtime, "--out", out, "--suites", suite, "--quick")
    told = []
    for extra in (0, 0, SLOWER_BY):
        week.write_suite(tmp_path, extra=extra)
        code, said = nox("nightly", "--store", bucket, *measured, "--verdict", tmp_path / "verdict.json")
        told.append((code, json.loads((tmp_path / "verdict.json").read_text()), said))

    assert [code for code, _, _ in told] == [0, 0, 1], [said for _, _, said in told]
    first, second, third = (verdict["run"] for _, verdict, _ in told)
    assert [verdict["good"] for _, verdict, _ in told] == [True, True, False]
    assert [(one["role"], one["baseline"]) for one in told[2][1]["baselines"]] == [("last", second), ("pinned", first)]
    assert f"Failed beside {second} (last good) and {first} (pinned): {week.SLOWED} chain:jit slower" in told[2][2]
    store = open_store(bucket)
    assert {f"{one}.json" for one in (first, second, third)} == set(store.list_files("verdicts"))
    assert {first, second, third} < set(store.list_folders())

    # Another machine: nothing of these runs is here.
    monkeypatch.setenv("JAXMETER_CACHE", str(tmp_path / "another"))
    page, table = tmp_path / "page.html", tmp_path / "table.csv"
    assert nox("report", bucket, "--out", page)[0] == 0
    assert {first, second, third} == {one for one in (first, second, third) if one in page.read_text()}
    assert nox("report", "export", bucket, "--out", table)[0] == 0
    assert nox("report", "history", bucket, "--case", "chain*")[0] == 0
    assert nox("compare", f"{bucket}/{second}", f"{bucket}/{third}")[0] == 1
    code, said = nox("gate", f"{bucket}/{second}", *measured)
    assert code == 1, said
    assert f"slower  {week.SLOWED} chain:jit" in said
    for secret in (s3["AWS_SECRET_ACCESS_KEY"], s3["AWS_ACCESS_KEY_ID"]):
        assert not any(secret in said for _, _, said in told)
        assert not any(secret.encode() in path.read_bytes() for path in out.rglob("*") if path.is_file())
