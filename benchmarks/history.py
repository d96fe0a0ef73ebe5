"""How often a history finds steps that are none, and misses those that are.

    python -m benchmarks.history [--series 1000] [--runs 60] [--otava]

Each series has 60 runs; in some a step of 5 or 10 % begins after two thirds of them, which counts as found where a step
is told within three runs of it. A false step is one in a series without any, or elsewhere in a series with one. With
`--otava` apache-otava judges the first 200 of the same series by its own defaults, in an environment of its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy
from numpy.typing import NDArray

from benchmarks.here import describe_here
from benchmarks.verdicts import write_rate
from jaxmeter.reporting.history.change_points import NEAR
from jaxmeter.reporting.history.segmentation import find_splits

RUNS = 60
STEPS = (0.0, 0.05, 0.1)
OTAVA_SERIES = 200
OTAVA = "apache-otava==0.8.0"

ASK_OTAVA = """
import json, sys
from otava.analysis import compute_change_points
print(json.dumps([
    [int(one.index) for one in compute_change_points(values, window_len=50, max_pvalue=0.001)[0]]
    for values in json.load(sys.stdin)
]))
"""

Noise = Callable[[numpy.random.Generator, int], NDArray[numpy.float64]]
Find = Callable[[list[list[float]]], list[Sequence[int]]]


def normal(random: numpy.random.Generator, runs: int) -> NDArray[numpy.float64]:
    """2 %."""
    return random.normal(0, 0.02, runs)


def outliers(random: numpy.random.Generator, runs: int) -> NDArray[numpy.float64]:
    """2 %, and one run in twenty up to half as long again."""
    return normal(random, runs) + (random.random(runs) < 0.05) * random.uniform(0.1, 0.4, runs)


def bimodal(random: numpy.random.Generator, runs: int) -> NDArray[numpy.float64]:
    """2 %, and one run in five a tenth slower: a machine with two speeds."""
    return normal(random, runs) + (random.random(runs) < 0.2) * 0.1


def drift(random: numpy.random.Generator, runs: int) -> NDArray[numpy.float64]:
    """2 %, each run remembering 0.7 of the one before."""
    steps = random.normal(0, 0.02 * numpy.sqrt(1 - 0.7**2), runs)
    found = numpy.empty(runs)
    found[0] = random.normal(0, 0.02)
    for index in range(1, runs):
        found[index] = 0.7 * found[index - 1] + steps[index]
    return found


KINDS: tuple[Noise, ...] = (normal, outliers, bimodal, drift)


def main() -> None:
    """Prints a line for each kind of noise and step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--otava", action="store_true")
    given = parser.parse_args()
    print(f"{given.series} series of {given.runs} runs each; {describe_here('numpy', 'scipy')}", flush=True)
    show("ours", lambda all_values: [find_splits(values) for values in all_values], given.series, given.runs)
    if given.otava:
        with tempfile.TemporaryDirectory() as folder:
            python = install_otava(Path(folder))
            print(f"{OTAVA}, {min(OTAVA_SERIES, given.series)} of these series each", flush=True)
            count = min(OTAVA_SERIES, given.series)
            show("otava", lambda all_values: ask_otava(python, all_values), count, given.runs)


def show(name: str, find: Find, count: int, runs: int) -> None:
    """Prints what one method finds."""
    begins = 2 * runs // 3
    for make in KINDS:
        for step in STEPS:
            found = find([make_series(make, step, seed, runs) for seed in range(count)])
            told = sum(any(abs(at - begins) <= NEAR for at in cuts) for cuts in found) if step else 0
            false = sum(any(not step or abs(at - begins) > NEAR for at in cuts) for cuts in found)
            hit = f"found {write_rate(told, count)}; " if step else ""
            print(
                f"{name}, {make.__name__}, step {100 * step:.0f} %: {hit}false {write_rate(false, count)}", flush=True
            )


def make_series(make: Noise, step: float, seed: int, runs: int) -> list[float]:
    """Times around a millisecond."""
    logs = make(numpy.random.default_rng(seed), runs)
    logs[2 * runs // 3 :] += numpy.log1p(step)
    return [float(value) for value in 1e-3 * numpy.exp(logs)]


def install_otava(folder: Path) -> Path:
    """An environment of its own, since it holds NumPy back; its python."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", OTAVA], check=True)
    return python


def ask_otava(python: Path, series: list[list[float]]) -> list[Sequence[int]]:
    """Where it sees steps, with its own defaults."""
    ended = subprocess.run(
        [python, "-c", ASK_OTAVA], input=json.dumps(series), capture_output=True, text=True, check=False
    )
    if ended.returncode:
        sys.exit(ended.stderr)
    found: list[Sequence[int]] = json.loads(ended.stdout)
    return found


if __name__ == "__main__":
    main()
