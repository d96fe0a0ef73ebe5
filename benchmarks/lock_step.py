"""What two environments in lock-step tell apart: equal programs, and some that are 3 or 5 % slower.

    python -m benchmarks.lock_step [--processes 8] [--busy] [--equal] [--runs 1]

The programs are those of `benchmarks.gate`: 60 cases, of which 36 take as long in the second version as in the first,
12 do 3 % more work and 12 5 %; with `--equal` all 60 take as long. Both environments are this one, in processes of
their own, as `nox -s upgrade` has them. A run takes nine minutes; after each the rates so far are printed.
"""

from __future__ import annotations

import argparse
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.false_alarms import BUSY
from benchmarks.gate import EFFECTS, measure, read
from benchmarks.gated import CASES, kind_of
from benchmarks.here import describe_here
from benchmarks.verdicts import write_rate
from jaxmeter.reporting.compare.changes import find_changes
from jaxmeter.reporting.compare.verdicts import Change, Verdict

WRONG = {"same": (Verdict.SLOWER, Verdict.FASTER)}
EXPECTED = {"three": math.log(1.03), "five": math.log(1.05)}


def main() -> None:
    """Prints how often each kind was told apart, and how far the ratios were from what they are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--busy", action="store_true", help="beside a process that uses a core")
    parser.add_argument("--equal", action="store_true", help="no program takes longer than before")
    parser.add_argument("--runs", type=int, default=1)
    given = parser.parse_args()
    beside = "beside a process that uses a core" if given.busy else "on an otherwise idle machine"
    print(f"{given.processes} processes, {beside}; {describe_here('jax', 'numpy')}", flush=True)
    load_process = subprocess.Popen([sys.executable, "-c", BUSY]) if given.busy else None
    by_kind: dict[tuple[float, str], list[Change]] = defaultdict(list)
    try:
        for number in range(given.runs):
            with tempfile.TemporaryDirectory() as folder:
                spent_s = _run(Path(folder), "equal" if given.equal else "2", given.processes, by_kind)
            print(f"run {number + 1}: {spent_s / CASES:.1f} s a comparison, both sides; of all runs so far:")
            _print_rates(by_kind)
    finally:
        if load_process is not None:
            load_process.kill()
            load_process.wait()


def _run(folder: Path, version: str, processes: int, by_kind: dict[tuple[float, str], list[Change]]) -> float:
    """Adds what a run tells, by minimum effect and kind; seconds that it took."""
    first = measure(folder, "before", "1", "--processes", "1")
    python = _make_first_version(folder)
    beside = ("--against", str(first), "--lock-step", str(python), "--processes", str(processes))
    start = time.monotonic()
    second = measure(folder, "after", version, *beside)
    spent_s = time.monotonic() - start
    sides = [read(path) for path in (first, second)]
    for effect in EFFECTS:
        for change in find_changes(*sides, minimum_effect=effect).times:
            number = int(change.case.partition("number=")[2].rstrip("]"))
            if change.replayed:
                by_kind[effect, "same" if version == "equal" else kind_of(number)].append(change)
    return spent_s


def _print_rates(by_kind: Mapping[tuple[float, str], Sequence[Change]]) -> None:
    for (effect, kind), changes in sorted(by_kind.items()):
        print(f"minimum effect {100 * effect:.0f} %, {kind}: {_describe(kind, changes)}", flush=True)


def _make_first_version(folder: Path) -> Path:
    """A python whose processes run the first version of the programs."""
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nBENCHMARK_VERSION=1 exec "{sys.executable}" "$@"\n', encoding="utf8")
    python.chmod(0o755)
    return python


def _describe(kind: str, changes: Sequence[Change]) -> str:
    counts = Counter(change.verdict for change in changes)
    wanted = WRONG.get(kind, (Verdict.SLOWER,))
    rate = write_rate(sum(counts[verdict] for verdict in wanted), len(changes))
    words = " or ".join(verdict.value for verdict in wanted)
    effects = [change.effect for change in changes if change.effect is not None]
    errors = [abs(math.log(effect.estimate) - EXPECTED.get(kind, 0.0)) for effect in effects]
    bounds = [(effect.estimate, effect.decisive.high) for effect in effects]
    widths = [math.log(high / estimate) for estimate, high in bounds if high is not None]
    summary = ", ".join(f"{count} {name}" for name, count in counts.most_common())
    return (
        f"{words} {rate} ({summary}); off by {100 * statistics.median(errors):.1f} % (median), "
        f"99 % half-width {100 * statistics.median(widths):.1f} %"
    )


if __name__ == "__main__":
    main()
