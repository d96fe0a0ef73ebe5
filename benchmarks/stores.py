"""How long does it take to read a thousand runs from a bucket, and does one writer of an id win?

    python -m benchmarks.stores [--runs 1000] [--races 50]

A real S3 server on this machine. The runs are those of `benchmarks.page_scale`: 100 cases each. They are read with an
empty cache, then with a full one, each into one table of runs in memory; then one page is made of them. In each race
sixteen processes push another run of one id. Needs what docker/locks/cloud.txt names.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from benchmarks.here import describe_here
from benchmarks.page_scale import MEBIBYTE, Cost, measure, read_largest, write_runs
from jaxmeter.harness.record import RunFolder, RunRecord, write_json
from jaxmeter.reporting.store.push import list_local
from jaxmeter.reporting.store.stores import open_store
from tests.cloud.servers import find_port, make_credentials, serve

WRITERS = 16

MERGE = """
import sys
from jaxmeter.reporting.load import load
from jaxmeter.reporting.store.fetch import fetch
loaded = load(fetch(sys.argv[1]).folders, only_newest=True)
assert len(loaded.runs) == int(sys.argv[2]), loaded.warnings
"""


def main() -> None:
    """Prints a line for each figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--races", type=int, default=50)
    given = parser.parse_args()
    print(describe_here("s3fs", "moto"), flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        port = find_port()
        with serve(sys.executable, "-m", "moto.server", "-p", str(port), port=port, log=folder / "log") as address:
            os.environ.update({**make_credentials(address), "JAXMETER_CACHE": str(folder / "cache")})
            import fsspec

            fsspec.filesystem("s3").mkdir("a-bucket")
            if given.runs:
                read(folder, "s3://a-bucket/runs", given.runs, given.cases)
            if given.races:
                won = sum(race(folder, f"s3://a-bucket/race-{number}") for number in range(given.races))
                print(f"{given.races} races of {WRITERS} writers of one id: in {won} of them exactly one won")


def read(folder: Path, url: str, runs: int, cases: int) -> None:
    """Reads many runs from a bucket, twice, and makes a page of them."""
    results = write_runs(read_largest(), folder / "runs", runs, cases)
    # In a process of its own: one that is started by a large one counts that one's memory as its own.
    sending = multiprocessing.get_context("spawn").Process(target=send, args=(folder / "runs", url))
    sending.start()
    sending.join()
    assert sending.exitcode == 0, f"sending the runs ended with {sending.exitcode}"
    size = sum(path.stat().st_size for path in (folder / "runs").rglob("run.json"))
    print(f"{runs} runs of {cases} cases, {results} results each, {size / MEBIBYTE:.0f} MiB of records", flush=True)
    command = [sys.executable, "-c", MERGE, url, str(runs)]
    for what in ("empty cache", "full cache"):
        print(f"read into one, {what}: {describe(measure(command, Path.cwd()))}", flush=True)
    page = folder / "page.html"
    cost = measure([sys.executable, "-m", "jaxmeter", "report", url, "--out", str(page)], Path.cwd())
    print(f"one page of them, full cache: {describe(cost)}", flush=True)


def send(runs: Path, url: str) -> None:
    """Puts the files of many runs into a bucket."""
    open_store(url).send({path: path.relative_to(runs).parts for path in runs.rglob("*.json")})


def describe(cost: Cost) -> str:
    """Time and memory."""
    return f"{cost.elapsed_s:.1f} s, {cost.planned_peak_bytes / MEBIBYTE:.0f} MiB"


def race(folder: Path, url: str) -> bool:
    """Whether of processes that push another run of one id exactly one wins, and its run is there whole."""
    example = read_largest()
    runs = []
    for number in range(WRITERS):
        manifest = msgspec.structs.replace(example.manifest, run_id="a-run", started=f"2026-01-02T03:04:{number:02}Z")
        run = RunFolder(folder / "racers" / f"{number}" / "a-run")
        write_json(run.manifest, manifest)
        write_json(run.mark, RunRecord(manifest=manifest, cases=example.cases, ended=manifest.started))
        runs.append(run)
    command = [sys.executable, "-m", "jaxmeter", "push"]
    writers = [
        subprocess.Popen([*command, run.path, url], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for run in runs
    ]
    codes = [writer.wait() for writer in writers]
    winners = [run for run, code in zip(runs, codes, strict=True) if code == 0]
    store = open_store(url)
    return (
        sorted(codes) == [0] + [2] * (WRITERS - 1)
        and store.list_files("a-run") == list_local(winners[0].path)
        and store.read("a-run", "run.json") == winners[0].mark.read_bytes()
    )


if __name__ == "__main__":
    main()
