"""Captures of quick runs: how much tracing slows a step down, and how far a device's busy share repeats.

python -m benchmarks.traced_steps          three quick runs, some five minutes
python -m benchmarks.traced_steps RUN RUN  of runs that are there
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from jaxmeter.harness.metrics.traced import SLOWED_DOWN
from jaxmeter.reporting.load import load

RUNS = 3
COMMAND = ("run", "--quick", "--processes", "3", "--probe", "timing", "--probe", "trace")


def measure(folder: Path) -> list[Path]:
    """Runs, one after the other."""
    for number in range(RUNS):
        words = [
            sys.executable,
            "-m",
            "jaxmeter",
            *COMMAND,
            "--out",
            str(folder),
            "--run-id",
            f"run-{number}",
            "--quiet",
        ]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return sorted(folder.glob("run-*"))


def main(words: list[str]) -> None:
    """Print the figures of the given runs, or of new ones."""
    with tempfile.TemporaryDirectory() as folder:
        loaded = load(list(map(Path, words)) or measure(Path(folder)))
    shares: dict[str, list[float]] = defaultdict(list)
    slowdowns: dict[str, list[float]] = defaultdict(list)
    totals: list[float] = []
    for run in loaded.runs:
        for case in run.cases:
            for variant in case.variants:
                name = f"{case.planned.name} {variant.planned.name}"
                if (share := variant.read("busy_share").estimate) is not None:
                    shares[name].append(share)
                    totals.append(sum(variant.outcomes["trace"].details.summary.ledger.values()))
                if (slowdown := variant.read("traced_over_timed").estimate) is not None:
                    slowdowns[name].append(slowdown)
    usual = {name: statistics.median(values) for name, values in slowdowns.items()}
    little = sum(value <= SLOWED_DOWN for value in usual.values())
    middle = statistics.median(usual.values())
    print(f"traced over timed at most {SLOWED_DOWN}: {little} of {len(usual)} variants, median {middle:.2f}")
    spreads = [max(values) - min(values) for values in shares.values() if len(values) > 1]
    if spreads:
        tenths = statistics.quantiles(spreads, n=10)
        print(
            f"busy share over {len(loaded.runs)} captures, largest less smallest: median "
            f"{100 * statistics.median(spreads):.1f} points, nine of ten within {100 * tenths[-1]:.1f}"
        )
    print(f"ledgers: {len(totals)}, sums from {100 * min(totals):.2f} to {100 * max(totals):.2f} %")
    for name in sorted(usual, key=lambda name: usual[name]):
        print(f"{usual[name]:6.2f}  {' '.join(f'{100 * share:3.0f}' for share in shares[name])} %  {name}")


if __name__ == "__main__":
    main(sys.argv[1:])
