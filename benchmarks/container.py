"""What a container costs: its start, importing jax in it, and whether programs run as fast in it as outside.

    python -m benchmarks.container [--rounds 12] [--base-image IMAGE]

Run it with the Python of the image and an environment made from docker/locks/cpu.txt: container and local environment
must hold the same Python and jax, else the comparison would be of those. Each round measures a few cases four times,
twice in the container and twice outside, in random order; so the same rounds tell what two equal runs differ by.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from jaxmeter.harness.metrics.statistics import geometric_interval
from jaxmeter.harness.record import RunRecord, read_json
from jaxmeter.launch.containers import Container, Mount, caller_here, run_arguments
from jaxmeter.launch.engines import Engine
from jaxmeter.launch.host import GB
from jaxmeter.launch.images import Image, image_size_bytes
from jaxmeter.launch.jobs import build_images
from jaxmeter.launch.request import DEFAULT_BASE_IMAGE, choose_engine

CHECKOUT = Path(__file__).parents[1]
STARTS = 10
ROUNDS = 12
CASES = ("selu[dtype=float32,n=1000000]", "matmul[dtype=float32,n=512,precision=default]", "cumulative_sum[n=100]")
HARNESS = ("-m", "jaxmeter", "run", "--probe", "timing", "--processes", "3", "--quiet")
VERSIONS = (
    "import json, platform, importlib.metadata as m; print(json.dumps([platform.python_version(), m.version('jax')]))"
)
IMPORT = "import time; start = time.perf_counter(); import jax; print(time.perf_counter() - start)"


def main() -> None:
    """Prints start, import and speed of a container beside those of the local environment."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--base-image", default=DEFAULT_BASE_IMAGE)
    given = parser.parse_args()
    engine, _ = choose_engine("container", os.environ)
    assert engine is not None
    image = Image("cpu", given.base_image, CHECKOUT)
    started = time.monotonic()
    build_images(engine, (image,), os.environ)
    size = (image_size_bytes(engine, image.name) or 0) / GB
    print(f"{engine}, {image.name}: {size:.2f} GB, made or found in {time.monotonic() - started:.1f} s")
    with tempfile.TemporaryDirectory() as folder:
        place = Place(engine, image.name, Path(folder))
        place.print_starts()
        place.print_speed(given.rounds)


class Place:
    """Running the same command lines in the container and outside."""

    def __init__(self, engine: Engine, image: str, folder: Path) -> None:
        self.engine, self.image, self.folder = engine, image, folder

    def run(self, where: str, *arguments: str) -> tuple[float, str]:
        """Wall seconds and stdout of python3 with these arguments, `inside` or `outside`."""
        command = [sys.executable, *arguments]
        if where == "inside":
            mount = Mount(self.folder, self.folder, writable=True)
            container = Container(self.image, tuple(arguments), mounts=(mount,))
            command = run_arguments(self.engine, container, caller_here(os.environ))
        start = time.monotonic()
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=CHECKOUT)
        return time.monotonic() - start, done.stdout

    def print_starts(self) -> None:
        """Start of a container, and importing jax, of fresh processes."""
        starts = {where: [self.run(where, "-c", "pass")[0] for _ in range(STARTS)] for where in ("inside", "outside")}
        print(f"an empty program: {_spread(starts['inside'])} inside, {_spread(starts['outside'])} outside")
        imports = {where: [float(self.run(where, "-c", IMPORT)[1]) for _ in range(STARTS)] for where in starts}
        print(f"import jax: {_spread(imports['inside'])} inside, {_spread(imports['outside'])} outside")

    def print_speed(self, rounds: int) -> None:
        """Execution times inside over outside, paired by round, with 99 % intervals."""
        inside = json.loads(self.run("inside", "-c", VERSIONS)[1])
        outside = [platform.python_version(), version("jax")]
        print(f"Python and jax: {inside} inside, {outside} outside")
        if inside != outside:
            print("no speed: the versions differ, so a difference would not be the container's")
            return
        ratios: dict[str, list[float]] = {"inside / outside": [], "inside / inside": [], "outside / outside": []}
        for number in range(rounds):
            order = random.sample(("inside", "inside", "outside", "outside"), 4)
            times: dict[str, list[list[float]]] = {"inside": [], "outside": []}
            for place, where in enumerate(order):
                times[where].append(self._measure(where, f"{number}-{place}"))
            first, second = times["inside"], times["outside"]
            means = ([(a + b) / 2 for a, b in zip(*pair, strict=True)] for pair in (first, second))
            ratios["inside / outside"].append(_mean_difference(*means))
            ratios["inside / inside"].append(_mean_difference(*first))
            ratios["outside / outside"].append(_mean_difference(*second))
        for name, logs in ratios.items():
            found = geometric_interval([math.exp(value) for value in logs])
            print(
                f"time {name}: {found.estimate:.4f} (99 % interval {found.low:.4f} to {found.high:.4f}), "
                f"{rounds} rounds of {len(CASES)} cases"
            )

    def _measure(self, where: str, run_id: str) -> list[float]:
        """log(execution seconds) of every variant of CASES, in the order of the record."""
        chosen = [word for case in CASES for word in ("--select", case)]
        self.run(where, *HARNESS, *chosen, "--out", str(self.folder), "--run-id", run_id)
        run = read_json(self.folder / run_id / "run.json", RunRecord)
        values = {}
        for case in run.cases:
            for variant in case.variants:
                timing = variant.outcomes.get("timing")
                seconds = [value for value in timing.values.get("execution_s", ()) if value] if timing else []
                if seconds:
                    values[case.id, variant.name] = statistics.fmean(map(math.log, seconds))
        return [values[key] for key in sorted(values)]


def _mean_difference(first: Sequence[float], second: Sequence[float]) -> float:
    return statistics.fmean(a - b for a, b in zip(first, second, strict=True))


def _spread(seconds: Sequence[float]) -> str:
    return f"{statistics.median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f})"


if __name__ == "__main__":
    main()
