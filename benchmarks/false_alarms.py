"""Our own false-alarm rate, and what we miss, while something else uses a core.

    python -m benchmarks.false_alarms [CASES]

One function is declared as two implementations, and a third works on 5 % more rows. Every case is
K = 5 launches of the real harness. `differs`: the 99 % interval excludes 1 and the estimate is beyond 3 %.
"""

from __future__ import annotations

import math
import subprocess
import sys
import tempfile
from pathlib import Path

from scipy.stats import beta

from harness.record import Run, read_json
from harness.record.statistics import MINIMUM_EFFECT, differs, speedup

CASES = 100
SUITE = Path(__file__).parent / "same_twice.py"
BUSY = "while True: pass"


def main() -> int:
    """Prints both rates with their bounds."""
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else CASES
    load = subprocess.Popen([sys.executable, "-c", BUSY])
    try:
        with tempfile.TemporaryDirectory() as folder:
            run = _measure(cases, Path(folder))
    finally:
        load.kill()
        load.wait()
    for title, variant in (("same function", "same:jit"), ("5 % more work", "slower:jit")):
        _show(title, variant, run)
    return 0


def _measure(cases: int, folder: Path) -> Run:
    command = [sys.executable, "-m", "harness", "run", "--suites", str(SUITE), "--out", str(folder), "--run-id", "aa"]
    options = ["--probe", "timing", "--launches", "5", "--budget", "10h"]
    selection = [word for number in range(cases) for word in ("--select", f"twice[number={number}]")]
    subprocess.run([*command, *options, *selection], check=True)
    return read_json(folder / "aa" / "run.json", Run)


def _show(title: str, variant: str, run: Run) -> None:
    ratios = []
    for case in run.cases:
        values = next(item for item in case.variants if item.name == variant).outcomes["timing"].values["log_ratio"]
        ratios.append(speedup([value for value in values if value is not None]))
    flagged = sum(map(differs, ratios))
    low, high = _bounds(flagged, len(ratios))
    off = sorted(abs(math.log(ratio.estimate)) for ratio in ratios)
    widths = sorted(ratio.half_width or math.inf for ratio in ratios)
    print(
        f"{title}: {flagged} of {len(ratios)} differ (99 % interval, minimum effect {100 * MINIMUM_EFFECT:.0f} %), "
        f"95 % bounds {100 * low:.1f} to {100 * high:.1f} %; "
        f"|estimate - 1| median {100 * off[len(off) // 2]:.2f} %, largest {100 * off[-1]:.2f} %; "
        f"half width median {100 * widths[len(widths) // 2]:.2f} %"
    )


def _bounds(count: int, of: int) -> tuple[float, float]:
    """Clopper-Pearson interval of a proportion, 95 %."""
    low = 0.0 if count == 0 else float(beta.ppf(0.025, count, of - count + 1))
    high = 1.0 if count == of else float(beta.ppf(0.975, count + 1, of - count))
    return low, high


if __name__ == "__main__":
    sys.exit(main())
