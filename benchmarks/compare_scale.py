"""How long it takes to compare two runs of many cases.

    python -m benchmarks.compare_scale [--cases 500]

The runs are one of examples/ with its cases again and again, each process's time moved at random; the second names
another jaxlib, so that every time is judged.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from benchmarks.here import describe_here
from benchmarks.page_scale import read_largest, write_runs
from jaxmeter.harness.record import RunFolder, RunRecord, read_run, write_json
from jaxmeter.reporting.compare.changes import compare_runs
from jaxmeter.reporting.load import load

ROUNDS = 5


def main() -> None:
    """Prints seconds for reading, for comparing, and for the whole command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=500)
    cases = parser.parse_args().cases
    print(describe_here("msgspec", "scipy"), flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        results = write_runs(read_largest(), folder, 2, cases)
        paths = [folder / f"run-{index:04}" for index in range(2)]
        _change_jaxlib(paths[1])
        print(f"two runs of {cases} cases, {results} variants each")
        print(f"reading both: {_least_s(lambda: load(paths)):.2f} s")
        runs = load(paths).runs
        print(f"comparing: {_least_s(lambda: compare_runs(*runs)):.2f} s")
        command = [sys.executable, "-m", "jaxmeter", "compare", *map(str, paths)]
        whole = _least_s(lambda: subprocess.run(command, capture_output=True, check=False))
        print(f"the whole command: {whole:.2f} s")


def _change_jaxlib(path: Path) -> None:
    folder = RunFolder(path)
    run = read_run(folder)
    here = run.manifest.environment
    other = msgspec.structs.replace(here, packages={**here.packages, "jaxlib": "0.0.0"})
    manifest = msgspec.structs.replace(run.manifest, environments={run.manifest.backend: other})
    write_json(folder.manifest, manifest)
    write_json(folder.mark, RunRecord(manifest=manifest, cases=run.cases, ended=run.ended))


def _least_s(call: Callable[[], object]) -> float:
    """The least of some rounds."""
    seconds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


if __name__ == "__main__":
    main()
