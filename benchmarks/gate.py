"""Does the gate cry wolf, and does it find what is slower? Unchanged and slowed programs, while another uses a core.

    python -m benchmarks.gate [--gates 9] [--equal] [--quiet]

Each gate is a baseline run of 60 cases, a second version measured beside its programs, and suspects confirmed by 12
fresh processes, as `nox -s gate` does it. Of the second version every program is another; 36 take as long as before, 12
do 3 % more work and 12 5 %. Judged twice: with a minimum effect of 2 % and with the default of 3 %. A gate takes some
ten minutes, with `--equal`, where all 60 take as long as before, too. After each the rates so far are printed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.false_alarms import BUSY
from benchmarks.gated import kind_of
from benchmarks.here import describe_here
from benchmarks.verdicts import write_rate
from jaxmeter.harness.metrics.reading import Run
from jaxmeter.reporting.compare.budgets import Budgets, make_defaults
from jaxmeter.reporting.compare.changes import find_changes
from jaxmeter.reporting.compare.gate import judge
from jaxmeter.reporting.compare.verdicts import TIME
from jaxmeter.reporting.load import load

SUITE = Path(__file__).parent / "gated.py"
EFFECTS = (0.02, 0.03)
INCOMPLETE = 3


def main() -> None:
    """Runs the gates, and after each prints what is known."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gates", type=int, default=9)
    parser.add_argument("--equal", action="store_true", help="no program takes longer than before")
    parser.add_argument("--quiet", action="store_true", help="without the process that uses a core")
    given = parser.parse_args()
    beside = "on an otherwise idle machine" if given.quiet else "beside a process that uses a core"
    print(f"{beside}; {describe_here('jax', 'numpy')}", flush=True)
    load_process = None if given.quiet else subprocess.Popen([sys.executable, "-c", BUSY])
    counts: Counter[tuple[float, str, str]] = Counter()
    seconds: list[tuple[float, int]] = []
    try:
        for number in range(given.gates):
            with tempfile.TemporaryDirectory() as folder:
                gate_counts, spent = pass_gate(Path(folder), "equal" if given.equal else "2")
            counts += gate_counts
            seconds.append(spent)
            print(f"gate {number + 1}: {spent[0]:.0f} s for {spent[1]} confirmed comparisons; of all gates so far:")
            print_rates(counts, seconds)
    except KeyboardInterrupt:
        print(f"ended by hand after {len(seconds)} gates")
    finally:
        if load_process is not None:
            load_process.kill()
            load_process.wait()


def print_rates(counts: Counter[tuple[float, str, str]], seconds: Sequence[tuple[float, int]]) -> None:
    """Prints how often each kind was called slower, and how long a confirmed comparison took."""
    for effect in EFFECTS:
        for kind in ("same", "three", "five"):
            total = sum(count for key, count in counts.items() if key[:2] == (effect, kind))
            rates = (f"{word} {write_rate(counts[effect, kind, word], total)}" for word in ("slower", "suspected"))
            if total:
                print(f"minimum effect {100 * effect:.0f} %, {kind}: {'; '.join(rates)}")
    compared = sum(count for _, count in seconds)
    if compared:
        total_s = sum(elapsed_s for elapsed_s, _ in seconds)
        print(f"a confirmed comparison: {total_s / compared:.1f} s, both sides", flush=True)


def pass_gate(folder: Path, version: str) -> tuple[Counter[tuple[float, str, str]], tuple[float, int]]:
    """What a gate found by minimum effect and kind, and the seconds of its confirmation with how many it confirmed."""
    first = measure(folder, "before", "1", "--processes", "1")
    second = measure(folder, "after", version, "--against", str(folder / "before"), "--processes", "5")
    effect = min(EFFECTS)
    suspects = folder / "suspects.json"
    compare = ("compare", str(first), str(second), "--suspects", str(suspects), "--min-effect", f"{100 * effect:g}%")
    subprocess.run([sys.executable, "-m", "jaxmeter", *compare], stdout=subprocess.DEVNULL, check=False)
    again, elapsed_s = None, 0.0
    if suspects.is_file():
        start = time.monotonic()
        again = measure(folder, "again", version, "--against", str(first), "--suspects", str(suspects))
        elapsed_s = time.monotonic() - start
    runs = [read(path) for path in (first, second, again) if path is not None]
    counts: Counter[tuple[float, str, str]] = Counter()
    confirmed = 0 if again is None else len(runs[2].manifest.cases)
    for effect in EFFECTS:
        changes = find_changes(runs[0], runs[1], minimum_effect=effect)
        confirmation = None
        if again is not None:
            confirmation = find_changes(runs[0], runs[2], minimum_effect=effect, explained_by=runs[1])
        judgement = judge(changes, Budgets(defaults=make_defaults(effect)), confirmed_by=confirmation)
        slower = {regression.case for regression in judgement.regressions if regression.metric == TIME}
        left = {suspect.case for suspect in judgement.unconfirmed}
        for change in changes.times:
            number = int(change.case.partition("number=")[2].rstrip("]"))
            kind = "same" if version == "equal" else kind_of(number)
            word = "slower" if change.case in slower else "suspected" if change.case in left else "passed"
            counts[effect, kind, word] += 1
    return counts, (elapsed_s, confirmed)


def measure(folder: Path, run_id: str, version: str, *arguments: str) -> Path:
    """A run of the suite, of one version."""
    where = ("--suites", str(SUITE), "--budget", "2h", "--out", str(folder), "--run-id", run_id)
    command = (sys.executable, "-m", "jaxmeter", "run", *where, "--probe", "timing", "--quiet", *arguments)
    environment = {**os.environ, "BENCHMARK_VERSION": version}
    ended = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False)
    if ended.returncode not in (0, INCOMPLETE):
        raise SystemExit(f"the run ended with {ended.returncode}")
    return folder / run_id


def read(path: Path) -> Run:
    """The run in a folder.

    Raises:
      SystemExit: It cannot be read.
    """
    loaded = load([path])
    if not loaded.runs:
        raise SystemExit("\n".join(loaded.warnings))
    return loaded.runs[0]


if __name__ == "__main__":
    main()
