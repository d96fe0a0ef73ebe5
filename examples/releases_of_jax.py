"""Measure programs under every release of JAX since 0.4.31, each in lock-step with the release before it.

`python -m examples.releases_of_jax` writes one run a release into `results/releases_of_jax`, one more run of the last
release against the first, and the page of all runs in that folder. A run that is there is not measured again, so that
the same command goes on where it stopped. A release takes about 5 minutes on two cores, without installation.

Python 3.12 is the one version that has all these releases. `--python PATH` makes the environments with it, and the
names of their runs end with its version.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

RELEASES = (
    *("0.4.31", "0.4.33", "0.4.35", "0.4.38", "0.5.0", "0.5.3", "0.6.0", "0.7.0", "0.7.1", "0.7.2"),
    *("0.8.0", "0.9.0", "0.9.1", "0.9.2", "0.10.0", "0.10.1", "0.10.2"),
    *("0.11.0", "0.11.1", "0.11.2", "0.12.0", "0.12.0.1"),
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
    releases: Sequence[str],
    out: Path,
    pythons: Mapping[str, Path],
    run: Run,
    programs: Sequence[str] = PROGRAMS,
    *,
    first: str = "",
    suffix: str = "",
) -> list[Path]:
    """Measure each release against the one before it, then the last against the first.

    A release that cannot be measured is left out, and the next one is compared with the last that could.

    Args:
      releases: Versions of jax, oldest first.
      out: Where runs are kept.
      pythons: The interpreter of each release's environment.
      programs: Patterns of the cases that are measured.
      first: The release that the last one is compared with; if it is empty, the first of `releases`.
      suffix: The end of the name of each run.
    Returns:
      The runs, in the order of `releases`; the run of first against last is the last one.
    """
    runs: dict[str, Path] = {}

    def measure_next(release: str, name: str, before: str) -> Path | None:
        folder = out / f"{name}{suffix}"
        earlier = (runs[before], pythons[before]) if before else None
        is_there = _measure_one(write_command(pythons[release], folder, earlier, programs), folder, run)
        return folder if is_there else None

    last = ""
    for release in releases:
        if (folder := measure_next(release, release, last)) is not None:
            runs[release], last = folder, release
    start = first or next(iter(runs), "")
    if start not in runs and last and (folder := measure_next(start, start, "")) is not None:
        runs[start] = folder
    if len(runs) > 2 and start in runs and (total := measure_next(last, f"{start}-to-{last}", start)) is not None:
        return [*runs.values(), total]
    return list(runs.values())


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


def find_python(release: str, environments: Path | None, python: str = sys.executable) -> Path:
    """Return the interpreter of a release's environment, which is made where it is missing.

    Args:
      environments: A folder of environments that were made by hand, each with the name of its release.
      python: The interpreter that makes it.
    """
    if environments is not None:
        return environments.absolute() / release / "bin" / "python"
    from jaxmeter.launch.environments import is_made, make_environment, read_wanted
    from jaxmeter.launch.releases import check_environment
    from jaxmeter.launch.shell import list_needed

    wanted = replace(read_wanted(f"jax=={release}"), python=python)
    folder, needed = REPOSITORY / ".nox" / "environments", list_needed()
    if not is_made(wanted, folder, needed):
        check_environment(wanted, "--python")
    return make_environment(wanted, folder, needed)


def find_suffix(python: str) -> str:
    """Return `-python-3.12`, the end of the names of runs."""
    show = "import sys; print(f'-python-{sys.version_info[0]}.{sys.version_info[1]}')"
    return subprocess.run([python, "-c", show], capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    """Measure what is missing, and write the page."""
    from jaxmeter.launch.options import UsageError

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", nargs="+", default=RELEASES, metavar="VERSION", help="oldest first")
    parser.add_argument("--first", default="", metavar="VERSION", help="what the last one is compared with, too")
    parser.add_argument("--programs", nargs="+", default=PROGRAMS, metavar="GLOB", help="cases that are measured")
    parser.add_argument("--out", type=Path, default=Path("results", "releases_of_jax"), help="where runs are kept")
    parser.add_argument("--python", metavar="PATH", help="interpreter of the environments; default: this one")
    parser.add_argument("--environments", type=Path, metavar="DIR", help="environments, each named by its version")
    given = parser.parse_args()
    asked = dict.fromkeys((*given.releases, *filter(None, [given.first])))
    try:
        pythons = {each: find_python(each, given.environments, given.python or sys.executable) for each in asked}
    except UsageError as error:
        parser.error(str(error))
    suffix = find_suffix(given.python) if given.python else ""
    out = given.out.absolute()
    measure(given.releases, out, pythons, run_command, given.programs, first=given.first, suffix=suffix)
    runs = sorted(str(mark.parent) for mark in out.glob("*/run.json"))
    subprocess.run([sys.executable, "-m", "jaxmeter", "report", *runs, "--out", str(out / "page.html")], check=True)


if __name__ == "__main__":
    main()
