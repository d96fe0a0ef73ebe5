"""Measure programs under every release of JAX since 0.4.31, each in lock-step with the release before it.

`python -m examples.releases_of_jax` writes one run a release into `results/releases_of_jax`, one more run of the last
release against the first, and the page that shows them. A run that is there is not measured again, so that the same
command goes on where it stopped. Seventeen releases take about 90 minutes on two cores, without installation.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

RELEASES = (
    *("0.4.31", "0.4.33", "0.4.35", "0.4.38", "0.5.0", "0.5.3", "0.6.0", "0.7.0", "0.7.1", "0.7.2"),
    *("0.8.0", "0.9.0", "0.9.1", "0.9.2", "0.10.0", "0.10.1", "0.10.2"),
)
"""From the release that many projects stayed with to the newest; of repairs, those that a public report names."""

PROGRAMS = (
    "reported",
    "matmul[dtype=float32,n=512,precision=default]",
    "selu[dtype=float32,n=10000]",
    "cumulative_sum[n=100]",
    "at_set[n=10000,updates=1]",
    "operations[n=10]",
    "attention[causal=True,dtype=float32,length=128]",
    "mlp_step[network=784-512-10]",
)
"""The programs that were reported, and the quick cases that every release can run."""

MEASURED = (0, 3)
"""Exit codes after which there is a run: whole, or without a case that failed."""

PROCESSES = 3

REPOSITORY = Path(__file__).resolve().parent.parent


Run = Callable[[Sequence[str]], int]
"""Words of a command -> its exit code."""


def measure(
    releases: Sequence[str], out: Path, pythons: Mapping[str, Path], run: Run, programs: Sequence[str] = PROGRAMS
) -> list[Path]:
    """Measure each release against the one before it, then the last against the first.

    A release that cannot be measured is left out, and the next one is compared with the last that could.

    Args:
      releases: Versions of jax, oldest first.
      out: Where runs are kept.
      pythons: The interpreter of each release's environment.
      programs: Patterns of the cases that are measured.
    Returns:
      The runs, in the order of `releases`; the run of first against last is the last one.
    """
    runs: list[Path] = []
    measured: list[str] = []
    for release in releases:
        earlier = (runs[-1], pythons[measured[-1]]) if runs else None
        if _measure_one(write_command(pythons[release], out / release, earlier, programs), out / release, run):
            runs.append(out / release)
            measured.append(release)
    if len(runs) > 2:
        last = out / f"{measured[0]}-to-{measured[-1]}"
        earlier = (runs[0], pythons[measured[0]])
        if _measure_one(write_command(pythons[measured[-1]], last, earlier, programs), last, run):
            runs.append(last)
    return runs


def _measure_one(command: Sequence[str], folder: Path, run: Run) -> bool:
    """Measure one release, unless that is done already; return whether there is a run."""
    if (folder / "run.json").is_file():
        return True
    begin = time.monotonic()
    code = run(command)
    print(f"{folder.name}: {time.monotonic() - begin:.0f} s, exit code {code}", flush=True)
    return code in MEASURED


def write_command(
    python: Path, folder: Path, earlier: tuple[Path, Path] | None, programs: Sequence[str] = PROGRAMS
) -> list[str]:
    """Return the words of the command that measures a release, or that continues an interrupted measurement.

    Args:
      earlier: The run and the interpreter of another release, which takes turns with this one.
    """
    words = [str(python), "-m", "jaxmeter", "run", "--quiet"]
    lock_step = [] if earlier is None else ["--against", str(earlier[0]), "--lock-step", str(earlier[1])]
    if folder.is_dir():
        return [*words, "--resume", str(folder), *lock_step]
    words += ["--backend", "cpu", "--full", "--probe", "compilation", "--probe", "memory"]
    words += [word for program in programs for word in ("--select", program)]
    if earlier is not None:
        words += ["--probe", "timing", "--processes", str(PROCESSES)]
    return [*words, *lock_step, "--out", str(folder.parent), "--run-id", folder.name]


def run_command(words: Sequence[str]) -> int:
    """Return the exit code of a command, run in this checkout."""
    variables = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    return subprocess.run(words, cwd=REPOSITORY, env=variables, check=False).returncode


def find_python(release: str, environments: Path | None) -> Path:
    """Return the interpreter of a release's environment, which is made where it is missing."""
    if environments is not None:
        return environments.absolute() / release / "bin" / "python"
    from launcher.environments import list_needed, make_environment, read_wanted

    needed = list_needed(REPOSITORY / "pyproject.toml")
    return make_environment(read_wanted(f"jax=={release}"), REPOSITORY / ".nox" / "environments", needed)


def main() -> None:
    """Measure what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", nargs="+", default=RELEASES, metavar="VERSION", help="oldest first")
    parser.add_argument("--out", type=Path, default=Path("results", "releases_of_jax"), help="where runs are kept")
    parser.add_argument("--environments", type=Path, metavar="DIR", help="environments, each named by its version")
    given = parser.parse_args()
    pythons = {release: find_python(release, given.environments) for release in given.releases}
    runs = measure(given.releases, given.out.absolute(), pythons, run_command)
    page = given.out / "page.html"
    subprocess.run([sys.executable, "-m", "jaxmeter", "report", *map(str, runs), "--out", str(page)], check=True)


if __name__ == "__main__":
    main()
