"""Three other harnesses on the twelve cases: installed beside ours, run, and what their own rules say of two runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).parents[1]
REQUIREMENTS = ("asv==0.6.6", "asv_runner==0.3.2", "pyperf==2.10.0", "pytest==9.2.0", "pytest-benchmark==5.3.1")

PYTEST_BENCHMARK = """\
import pytest
from benchmarks.twelve_cases import CASES, build


@pytest.mark.parametrize("case", CASES[:{cases}])
def test_case(benchmark, case):
    benchmark(build(case))
"""

# The loop is ours, so that no sample holds the compilation.
PYPERF = """\
import time
import pyperf
from benchmarks.twelve_cases import CASES, build


def repeat(loops, case):
    call = build(case)
    start = time.perf_counter()
    for _ in range(loops):
        call()
    return time.perf_counter() - start


runner = pyperf.Runner()
for case in CASES[:{cases}]:
    runner.bench_time_func(case, repeat, case)
"""

# Built in the first call, since asv would run a setup() before every call. The warm-up must outlast compiling: where it
# does not, asv takes the call that compiles for a usual one, and makes samples of one call.
ASV = """\
from benchmarks.twelve_cases import CASES, build


class Twelve:
    params = CASES[:{cases}]
    param_names = ("case",)
    warmup_time = 2.0

    def time_case(self, case):
        build(case)()
"""

ASV_SETTINGS = {
    "version": 1,
    "project": "twelve",
    "repo": "repository",
    "branches": ["main"],
    "environment_type": "existing",
    "benchmark_dir": "asv_benchmarks",
    "results_dir": "results",
}

PYTEST_BENCHMARK_RULES = (("min", 5.0), ("median", 10.0))
"""Statistic and limit in percent. It has no default; these are the two that its documentation and its users take."""

_PYPERF_CHANGE = re.compile(r"^(\S+): Mean \+- std dev: .*x (?:faster|slower)$", re.MULTILINE)
_ASV_CHANGE = re.compile(r"^\|\s*[+-]\s*\|.*\('([^']+)'\)\s*\|$", re.MULTILINE)


def flag_pytest_benchmark(
    first: Mapping[str, Any], second: Mapping[str, Any], statistic: str, limit: float
) -> set[str]:
    """Cases of which a statistic differs by more than a limit, either way.

    Args:
      first, second: What `--benchmark-json` wrote.
      limit: Percent, as in `--benchmark-compare-fail=min:5%`, which looks one way; a run has no before and after here.
    """
    before, after = ({test["param"]: test["stats"][statistic] for test in run["benchmarks"]} for run in (first, second))
    return {case for case in before if max(after[case] / before[case], before[case] / after[case]) > 1 + limit / 100}


def flag_pyperf(compared: str) -> set[str]:
    """Cases that `pyperf compare_to` calls significant."""
    return set(_PYPERF_CHANGE.findall(compared))


def flag_asv(compared: str) -> set[str]:
    """Cases that `asv compare` marks as better or worse."""
    return set(_ASV_CHANGE.findall(compared))


@dataclass(frozen=True)
class Tools:
    """The three in an environment of their own.

    Args:
      folder: For the environment, programs and results.
      cases: How many of the twelve.
      quick: Whether to measure as shortly as possible, for a trial.
    """

    folder: Path
    cases: int
    quick: bool

    def install(self) -> None:
        """Makes the environment, which finds everything else where this program has it, and writes the programs."""
        subprocess.run([sys.executable, "-m", "venv", str(self.folder / "venv")], check=True)
        self._call("-m", "pip", "install", "--quiet", "--disable-pip-version-check", *REQUIREMENTS)
        own = self._call("-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
        running = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), str(CHECKOUT)}
        Path(own, "running.pth").write_text("\n".join(sorted(running)) + "\n")
        self._write("test_twelve.py", PYTEST_BENCHMARK.format(cases=self.cases))
        self._write("pyperf_twelve.py", PYPERF.format(cases=self.cases))
        self._write("asv_benchmarks/__init__.py", "")
        self._write("asv_benchmarks/twelve.py", ASV.format(cases=self.cases))
        self._write("asv.conf.json", json.dumps(ASV_SETTINGS))
        # asv names results by commits; these two hold nothing.
        for words in (
            ["init", "--quiet", "--initial-branch=main"],
            *(["commit", "--quiet", "-m", run] for run in "AB"),
        ):
            self._git(*words, *(["--allow-empty"] if words[0] == "commit" else []))
        self._call("-m", "asv", "machine", "--yes")

    def measure_pytest_benchmark(self, run: str) -> None:
        """One run, A or B."""
        short = ("--benchmark-max-time=0.05", "--benchmark-min-rounds=2") if self.quick else ()
        plain = ("-q", "-p", "no:cacheprovider", "--benchmark-json", f"bench_{run}.json")
        self._call("-m", "pytest", "test_twelve.py", *plain, *short)

    def measure_pyperf(self, run: str) -> None:
        """One run; its `--fast`, which halves the processes and keeps the rest."""
        short = ("-p", "2", "-n", "2", "-w", "1", "--min-time", "0.01") if self.quick else ("--fast",)
        plain = ("--quiet", "--inherit-environ", "JAX_PLATFORMS", "-o", f"perf_{run}.json")
        self._call("pyperf_twelve.py", *plain, *short)

    def measure_asv(self, run: str) -> None:
        """One run."""
        short = ("-a", "repeat=2", "-a", "rounds=1", "-a", "warmup_time=0.1") if self.quick else ()
        self._call("-m", "asv", "run", "--python=same", "--set-commit-hash", self._find_commit(run), *short)

    def compare_pytest_benchmark(self, statistic: str, limit: float) -> set[str]:
        """Cases that differ between the two runs."""
        first, second = (json.loads((self.folder / f"bench_{run}.json").read_text()) for run in "AB")
        return flag_pytest_benchmark(first, second, statistic, limit)

    def compare_pyperf(self) -> set[str]:
        """Cases that differ between the two runs."""
        return flag_pyperf(self._call("-m", "pyperf", "compare_to", "perf_A.json", "perf_B.json"))

    def compare_asv(self) -> set[str]:
        """Cases that differ between the two runs."""
        return flag_asv(self._call("-m", "asv", "compare", self._find_commit("A"), self._find_commit("B")))

    def _find_commit(self, run: str) -> str:
        return self._git("log", "--format=%H", f"--grep=^{run}$").strip()

    def _write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def _git(self, *words: str) -> str:
        repository = self.folder / "repository"
        repository.mkdir(exist_ok=True)
        identity = ("-c", "user.name=benchmark", "-c", "user.email=benchmark@example.org")
        return self._run("git", *identity, *words, folder=repository)

    def _call(self, *arguments: str) -> str:
        """Stdout of the environment's Python with these arguments."""
        return self._run(str(self.folder / "venv" / "bin" / "python"), *arguments, folder=self.folder)

    def _run(self, *command: str, folder: Path) -> str:
        # asv writes into the home folder.
        variables = {**os.environ, "HOME": str(self.folder), "JAX_PLATFORMS": "cpu"}
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=variables, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout
