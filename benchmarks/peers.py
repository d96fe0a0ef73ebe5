"""How often are two runs of unchanged code called different, by other harnesses and by ours?

    python -m benchmarks.peers [--quick]

Twelve jitted functions of our suites; each harness measures them twice, one run after the other, and its own rule
compares the two. Ours compares two runs as benchmarks.two_runs does, and a function with itself within one run. The
others are installed into a temporary environment. It takes about a quarter of an hour; --quick tries three cases, as
shortly as each harness can, and its figures mean nothing.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection
from pathlib import Path

from benchmarks.here import describe_here
from benchmarks.peer_tools import PYTEST_BENCHMARK_RULES, REQUIREMENTS, Tools
from benchmarks.twelve_cases import CASES
from benchmarks.two_runs import (
    NORMALISED,
    Kind,
    NothingToCompareError,
    find_pairs,
    find_verdict_interval,
    is_contended,
    name_variant,
    read_variants,
)
from benchmarks.verdicts import write_rate
from jaxmeter.harness.metrics.statistics import CONFIDENCE, MINIMUM_EFFECT, differs

SUITE = Path(__file__).parent / "twelve_cases.py"
QUICK_CASES = 3
OUR_RULE = f"{100 * CONFIDENCE:.0f} % interval, minimum effect {100 * MINIMUM_EFFECT:.0f} %"


def main() -> None:
    """Prints false verdicts, rule by rule."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    cases = CASES[:QUICK_CASES] if quick else CASES
    print(f"{describe_here('jax', 'numpy')}; {', '.join(REQUIREMENTS)}; {len(cases)} cases, {', '.join(cases)}")
    with tempfile.TemporaryDirectory() as folder:
        tools = Tools(Path(folder), len(cases), quick)
        tools.install()
        _time("pytest-benchmark", tools.measure_pytest_benchmark)
        for statistic, limit in PYTEST_BENCHMARK_RULES:
            _show(f"{statistic}:{limit:g}%, either way", tools.compare_pytest_benchmark(statistic, limit), len(cases))
        _time("pyperf", tools.measure_pyperf)
        _show("compare_to, its t test", tools.compare_pyperf(), len(cases))
        _time("asv", tools.measure_asv)
        _show("compare, factor 1.1 and its statistics", tools.compare_asv(), len(cases))
        _time("jaxmeter", lambda run: _measure_ours(Path(folder), run, cases, quick))
        _show_ours(Path(folder))


def _time(title: str, measure: Callable[[str], None]) -> None:
    start = time.monotonic()
    for run in "AB":
        measure(run)
    print(f"{title}: two runs, {(time.monotonic() - start) / 2:.0f} s each", flush=True)


def _show(rule: str, flagged: Collection[str], of: int) -> None:
    named = f": {', '.join(sorted(flagged))}" if flagged else ""
    print(f'  "differs" by {rule}: {write_rate(len(flagged), of)}{named}', flush=True)


def _measure_ours(folder: Path, run: str, cases: Collection[str], quick: bool) -> None:
    command = [sys.executable, "-m", "jaxmeter", "run", "--suites", str(SUITE), "--probe", "timing", "--quiet"]
    selection = [word for case in cases for word in ("--select", f"twelve[case={case}]")]
    options = ["--out", str(folder), "--run-id", run, *(["--quick"] if quick else [])]
    subprocess.run([*command, *selection, *options], check=True, stdout=subprocess.DEVNULL)


def _show_ours(folder: Path) -> None:
    first, second = (read_variants(folder / run) for run in "AB")
    for title, metric in (("normalised times", NORMALISED), ("times", "execution_s")):
        try:
            pairs = find_pairs(Kind(title, metric, lambda variant: variant.is_baseline), first, second)
        except NothingToCompareError as error:
            print(f"  {title}: {error}")
            continue
        for which, chosen in (
            ("all", pairs),
            ("contended in neither", [pair for pair in pairs if not is_contended(pair)]),
        ):
            flagged = {pair.name for pair in chosen if differs(pair.ratio)}
            _show(f"{OUR_RULE}, {title}, {which}", flagged, len(chosen))
    for name, run in (("A", first), ("B", second)):
        controls = [variant for variant in run.values() if not variant.is_baseline]
        intervals = {name_variant(control): find_verdict_interval(control.read("speedup")) for control in controls}
        flagged = {case for case, interval in intervals.items() if interval is not None and differs(interval)}
        _show(f"{OUR_RULE}, a function against itself within run {name}", flagged, len(intervals))


if __name__ == "__main__":
    main()
