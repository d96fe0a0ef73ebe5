"""How a page grows: a thousand runs in one, with `asv publish` of equal-sized data beside it; ten thousand results.

    python -m benchmarks.page_scale [--runs 1000] [--cases 100]

The runs are one of examples/, with other ids and dates and each process's time moved at random; the page of ten
thousand results is of its cases, again and again. A browser with its processor slowed four times opens that page and
sorts it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from benchmarks.here import describe_here
from benchmarks.pages import open_page
from jaxmeter.harness.record import CaseRecord, Outcome, RunFolder, RunRecord, read_run, write_json

EXAMPLES = Path("examples")
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
RESULTS = 10_000
SCATTER = 0.05
MEBIBYTE = 2**20
ASV = "asv==0.6.6"


@dataclass(frozen=True)
class Cost:
    """What a program took: seconds of wall time, and the most memory that it held."""

    elapsed_s: float
    planned_peak_bytes: int


def main() -> None:
    """Prints a line for each figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--cases", type=int, default=100)
    given = parser.parse_args()
    print(describe_here("jinja2", "msgspec"), flush=True)
    example = read_largest()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        results = write_runs(example, work / "runs", given.runs, given.cases)
        cost = report(work / "runs", work / "page.html")
        print(f"{given.runs} runs of {given.cases} cases, {results} results each: {describe(cost, work / 'page.html')}")
        names = results
        asv = publish_with_asv(work, given.runs, names)
        print(f"asv publish, {given.runs} commits of {names} benchmarks: {asv.elapsed_s:.0f} s, ", end="")
        print(
            f"{asv.planned_peak_bytes / MEBIBYTE:.0f} MiB; ours took {cost.elapsed_s / asv.elapsed_s:.2f} of its time"
        )
        copies = -(-RESULTS // sum(len(case.variants) for case in example.manifest.cases))
        results = write_runs(example, work / "large", 1, copies * len(example.manifest.cases))
        cost = report(work / "large", work / "large.html", "--allow-large")
        print(f"{results} results of one run: {describe(cost, work / 'large.html')}")
        print(open_page(work / "large.html"))


def read_largest() -> RunRecord:
    """The run in examples/ with most cases."""
    runs = (read_run(RunFolder(mark.parent)) for mark in sorted(EXAMPLES.glob("*/run.json")))
    return max(runs, key=lambda run: len(run.cases))


def write_runs(example: RunRecord, folder: Path, runs: int, cases: int) -> int:
    """Writes runs of so many cases; how many results each has."""
    whole = repeat(example, cases)
    drawn = random.Random(0)
    for index in range(runs):
        started = (FIRST + timedelta(hours=6 * index)).strftime("%Y-%m-%dT%H:%M:%SZ")
        manifest = msgspec.structs.replace(whole.manifest, run_id=f"run-{index:04}", started=started)
        moved = tuple(move(case, drawn) for case in whole.cases)
        run = RunFolder(folder / manifest.run_id)
        write_json(run.manifest, manifest)
        write_json(run.mark, RunRecord(manifest=manifest, cases=moved, ended=started))
    return sum(len(case.variants) for case in whole.manifest.cases)


def repeat(run: RunRecord, cases: int) -> RunRecord:
    """The run with so many cases: its own, again and again, with a number at their names."""
    planned, recorded = [], []
    records = {case.id: case for case in run.cases}
    for index in range(cases):
        copy, place = divmod(index, len(run.manifest.cases))
        case = run.manifest.cases[place]
        new = {"id": f"{case.id}-{copy}", "name": f"{case.name}#{copy}"}
        planned.append(msgspec.structs.replace(case, workload=f"{case.workload}_{copy}", **new))
        recorded.append(msgspec.structs.replace(records[case.id], **new))
    manifest = msgspec.structs.replace(run.manifest, cases=tuple(planned))
    return RunRecord(manifest=manifest, cases=tuple(recorded), ended=run.ended)


def move(case: CaseRecord, drawn: random.Random) -> CaseRecord:
    """The case with each process's times moved at random."""
    variants = tuple(
        msgspec.structs.replace(
            variant, outcomes={probe: _move(outcome, drawn) for probe, outcome in variant.outcomes.items()}
        )
        for variant in case.variants
    )
    return msgspec.structs.replace(case, variants=variants)


def _move(outcome: Outcome, drawn: random.Random) -> Outcome:
    times = outcome.values.get("execution_s")
    if times is None:
        return outcome
    moved = tuple(None if one is None else one * drawn.lognormvariate(0, SCATTER) for one in times)
    return msgspec.structs.replace(outcome, values={**outcome.values, "execution_s": moved})


def report(runs: Path, page: Path, *options: str) -> Cost:
    """What it takes to make the page of all runs in a folder."""
    folders = [str(path) for path in sorted(runs.iterdir())]
    return measure([sys.executable, "-m", "jaxmeter", "report", *folders, "--out", str(page), *options], Path.cwd())


def measure(command: list[str], folder: Path, variables: dict[str, str] | None = None) -> Cost:
    """What a program takes."""
    began = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output, env=variables)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            output.seek(0)
            raise SystemExit(f"{command[:4]} ended with {process.returncode}:\n{output.read().decode()[-2_000:]}")
    return Cost(time.perf_counter() - began, usage.ru_maxrss * 1024)


def describe(cost: Cost, page: Path) -> str:
    """Time, memory and the page's size."""
    text = page.read_text("utf-8")
    index = text.partition('id="index">')[2].partition("</script>")[0]
    size = f"page {len(text.encode()) / 1e3:.0f} kB, its index {len(index) / 1e3:.0f} kB"
    return f"{cost.elapsed_s:.1f} s, {cost.planned_peak_bytes / MEBIBYTE:.0f} MiB, {size}"


def publish_with_asv(work: Path, runs: int, benchmarks: int) -> Cost:
    """What `asv publish` takes for a repository of so many commits with a result of each benchmark at each."""
    folder = work / "asv"
    python = folder / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", ASV], check=True)
    commits = list(_make_commits(folder / "repository", runs))
    names = [f"suite.time_{index:04}" for index in range(benchmarks)]
    settings = {
        "version": 1,
        "project": "scale",
        "repo": "repository",
        "branches": ["main"],
        "environment_type": "virtualenv",
        "benchmark_dir": "benchmarks",
    }
    (folder / "asv.conf.json").write_text(json.dumps(settings))
    (folder / "benchmarks").mkdir()
    machine = folder / "results" / "here"
    machine.mkdir(parents=True)
    facts = {"arch": "x", "cpu": "x", "machine": "here", "num_cpu": "2", "os": "x", "ram": "1", "version": 1}
    (machine / "machine.json").write_text(json.dumps(facts))
    about = {
        name: {"code": "", "name": name, "param_names": [], "params": [], "type": "time", "unit": "seconds",
               "timeout": 60, "version": "1"}
        for name in names
    }  # fmt: skip
    (folder / "results" / "benchmarks.json").write_text(json.dumps({**about, "version": 2}))
    drawn = random.Random(0)
    for index, commit in enumerate(commits):
        results = {name: [[drawn.lognormvariate(-7, SCATTER)], [], "1"] for name in names}
        found = {
            "commit_hash": commit,
            "env_name": "virtualenv-py3",
            "date": int((FIRST + timedelta(hours=6 * index)).timestamp() * 1000),
            "params": {**facts, "python": "3"},
            "python": "3",
            "requirements": {},
            "env_vars": {},
            "result_columns": ["result", "params", "version"],
            "results": results,
            "durations": {},
            "version": 2,
        }
        (machine / f"{commit[:8]}-virtualenv-py3.json").write_text(json.dumps(found))
    return measure([str(python), "-m", "asv", "publish"], folder, {**os.environ, "HOME": str(folder)})


def _make_commits(repository: Path, count: int) -> Iterator[str]:
    """Commits that hold nothing, from the first to the last."""
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main", repository], check=True)
    lines = []
    for index in range(count):
        at = int((FIRST + timedelta(hours=6 * index)).timestamp())
        lines += [
            "commit refs/heads/main",
            f"mark :{index + 1}",
            f"committer benchmark <benchmark@example.org> {at} +0000",
            "data 1\nx",
            *([f"from :{index}"] if index else []),
        ]
    script = "\n".join(lines).encode()
    subprocess.run(["git", "fast-import", "--quiet"], cwd=repository, input=script, check=True)
    listed = subprocess.run(
        ["git", "log", "--reverse", "--format=%H", "main"], cwd=repository, capture_output=True, text=True, check=True
    )
    yield from listed.stdout.split()


if __name__ == "__main__":
    main()
