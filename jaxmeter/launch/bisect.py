"""Bisections and walks over releases: the environments of the releases, and the runs in each."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jaxmeter.harness.record import RecordError, RunFolder
from jaxmeter.launch.command_line import REASONS
from jaxmeter.launch.environments import ask_version, read_wanted
from jaxmeter.launch.options import UsageError, read_options
from jaxmeter.launch.runs import CAPTURE, DEFAULT_OUT, PROGRAMS, has_begun, has_ended, read_record
from jaxmeter.launch.shell import FINE, NO_ANSWER, USAGE_ERROR, Shell, prepare_environment
from jaxmeter.launch.upgrade import read_variables

OWN = ("--good", "--bad", "--case", "--variant", "--metric", "--command", "--processes", "--resume", "--python")

TRY = "--try-env"

OF_TIMES = ("--processes", "--resume", TRY)
"""Options of a walk alone."""

REFUSED = {name: why for name, why in REASONS.items() if name != "--resume"} | {
    "--old": "a bisection has a good release: --good",
    "--new": "a bisection has a bad release: --bad",
    "--lock-step": "a walk measures each release in lock-step with the one before it",
    "--probe": "the criterion decides: --metric",
    "--select": "name one case: --case",
}

PROCESSES = 5
"""Of each step of a walk. A step with a time that is not decided is measured again with twice as many."""


@dataclass(frozen=True)
class BisectRequest:
    """A bisection.

    Args:
      case: A pattern, as of `--select`; empty if a command decides.
      variant: Its name; if it is empty, all variants of a walk, else the one that differs the most.
      metric: `program`, or the name of a metric in budgets.
      command: A shell command that decides; empty if a case decides.
      is_walk: Whether times decide: then there may be several change points, and halving would miss some.
      resumed: The name of an interrupted walk; empty for a new one.
      python: The interpreter that all environments are made with.
      variables: Environment variables that may undo the first step that is slower.
      measuring: Arguments of every measurement.
      out: Where runs are kept.
    """

    good: str
    bad: str
    case: str
    variant: str
    metric: str
    command: str
    processes: int
    is_walk: bool
    resumed: str
    python: str
    variables: Mapping[str, str]
    measuring: tuple[str, ...]
    out: Path


def read_bisect_request(arguments: Sequence[str], time: str) -> BisectRequest:
    """Return what `--good RELEASE --bad RELEASE --case NAME [--variant NAME] [--metric NAME] …`, or `--command`, asks.

    Args:
      time: The metric of a walk, and the default.
    Raises:
      UsageError: Something is missing, contradicts itself, or is what a bisection does not take.
    """
    given = read_options(arguments, *OWN, TRY, "--out", refused=REFUSED)
    good, bad, case, variant, metric, command, processes, resumed, python = (given.get(name) or "" for name in OWN)
    example = '--good "jax==0.9.0" --bad "jax==0.12.0.1" --case "mlp_step[…]"'
    if not good or not bad:
        raise UsageError(f"name a good and a bad release: {example}")
    if bool(case) == bool(command):
        raise UsageError(
            f"give what identifies a bad release, a case or a command: {example}, or --command 'python check.py'"
        )
    if command and (metric or variant):
        raise UsageError("--command decides by its exit code; leave out --metric and --variant")
    of_times = next((name for name in OF_TIMES if name in given), None)
    if of_times is not None and (command or metric not in ("", time)):
        raise UsageError(f"{of_times} is about times; leave it out, or leave out --metric and --command")
    out = Path(given.get("--out") or DEFAULT_OUT)
    if resumed and (resumed != Path(resumed).name or not any(_list_runs(out, resumed))):
        raise UsageError(f"--resume {resumed}: no run in {out} has a name that begins with it")
    if python:
        ask_version(python)
    return BisectRequest(
        good=good,
        bad=bad,
        case=case,
        variant=variant,
        metric=metric or time,
        command=command,
        processes=_read_processes(processes),
        is_walk=metric in ("", time) and not command,
        resumed=resumed,
        python=python or sys.executable,
        variables=read_variables(TRY, given.values.get(TRY, ())),
        measuring=(*given.rest, *given.list_words("--out")),
        out=out,
    )


def make_environment_of(shell: Shell, packages: str, python: str) -> Path:
    """The python of an environment of a release.

    Raises:
      UsageError: pip cannot install it.
    """
    return prepare_environment(shell, replace(read_wanted(packages), python=python))


def _list_runs(out: Path, name: str) -> list[str]:
    """Return the names of the runs of a walk."""
    return [path.name for path in out.iterdir() if path.name.startswith(f"{name}-")] if out.is_dir() else []


def _read_processes(text: str) -> int:
    if not text:
        return PROCESSES
    if not text.isascii() or not text.isdigit() or int(text) < 3:
        raise UsageError(f"--processes '{text}' must be an integer ≥ 3")
    return int(text)


MEASURED = (FINE, NO_ANSWER)
"""Exit codes of the harness after which there is a run: a whole one, and one that lacks something."""

AGAIN = "-again"
"""How the name of a second measurement ends."""

Make = Callable[[str], Path]
"""Packages -> the python of an environment that holds them. Raises UsageError."""

CallHarness = Callable[[Path, Sequence[str], Mapping[str, str]], int]
"""Python, arguments of the harness and environment variables of this program alone -> exit code."""


class NotMeasuredError(Exception):
    """A release cannot be installed or measured; the message is the reason."""


@dataclass
class Neighbours:
    """Releases that are measured by themselves, or in lock-step with an earlier one.

    Args:
      folder: Beginning of the path of each run, to which releases are added.
      measuring: Options of all measurements.
      processes: Of the first attempt; a second attempt has twice as many.
      variant: The only variant that counts; all count where it is empty.
    """

    folder: Path
    measuring: Sequence[str]
    processes: int
    make: Make
    run: CallHarness
    variant: str = ""

    def __post_init__(self) -> None:
        """Begin without a run."""
        self._runs: list[Path] = []
        self._baselines: dict[str, Path] = {}
        self._pythons: dict[str, Path] = {}
        self._pairs: dict[tuple[str, str], tuple[Path, Path]] = {}

    def begin(self, release: str) -> None:
        """Measure the first release by itself.

        Raises:
          NotMeasuredError: It cannot be installed or measured, or the variant was not found right.
        """
        run = self._place(_version(release))
        self._measure(release, run, (*PROGRAMS, *CAPTURE))
        _check_right(run, self.variant)
        self._baselines[release] = run

    def __call__(
        self, before: str, after: str, attempt: int, variables: Mapping[str, str] | None = None
    ) -> tuple[Path, Path]:
        """Measure a release in lock-step with an earlier one; return the runs of both.

        Args:
          variables: Environment variables on the side of the later release.
        Raises:
          NotMeasuredError: It cannot be installed or measured.
        """
        baseline = self._baselines[before]
        setting = "".join(f"\n{name}={value}" for name, value in (variables or {}).items())
        variation = f"-with-{hashlib.sha256(setting.encode()).hexdigest()[:7]}" if variables else ""
        again = AGAIN if attempt else ""
        run = self._place(f"{_version(after)}-against-{_version(before)}{variation}{again}")
        options = ("--probe", "timing", *PROGRAMS, *CAPTURE, "--processes", str(self.processes * 2**attempt))
        self._measure(after, run, (*options, "--against", str(baseline)), before, variables or {})
        if not variables:
            self._pairs[before, after] = (baseline, run)
        self._baselines.setdefault(after, run)
        return baseline, run

    def list_runs(self) -> list[Path]:
        """Return all runs, in the order in which they were measured."""
        return list(self._runs)

    def find_pair(self, before: str, after: str) -> tuple[Path, Path]:
        """Return the runs of two releases, of the last attempt."""
        return self._pairs[before, after]

    def _place(self, name: str) -> Path:
        return self.folder.with_name(f"{self.folder.name}-{name}")

    def _measure(
        self,
        release: str,
        run: Path,
        options: Sequence[str],
        before: str = "",
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """Make or finish a run; a whole one is taken as it is.

        Raises:
          NotMeasuredError: An environment cannot be made, or the measurement failed.
          UsageError: A run that was interrupted cannot be finished.
        """
        if not has_ended(run):
            python = self._prepare(release)
            beside = ("--lock-step", str(self._prepare(before))) if before else ()
            if is_begun := has_begun(run):
                given = read_options(self.measuring, "--suites", "--data")  # no path is taken from a record
                paths = [word for name, values in given.values.items() for value in values for word in (name, value)]
                words = ("--resume", str(run), *paths)
            else:
                words = (*self.measuring, *options, "--run-id", run.name)
            code = self.run(python, ("run", *words, *beside), variables or {})
            if is_begun and code == USAGE_ERROR:
                raise UsageError(f"{run} cannot be finished, for the reason above; remove it to measure it again")
            check_measured(code)
        self._runs.append(run)

    def _prepare(self, release: str) -> Path:
        if release not in self._pythons:
            try:
                self._pythons[release] = self.make(release)
            except UsageError as error:
                raise NotMeasuredError(str(error)) from error
        return self._pythons[release]


def check_measured(code: int) -> None:
    """Check the exit code of the harness.

    Raises:
      NotMeasuredError: There is no run.
    """
    if code not in MEASURED:
        raise NotMeasuredError(f"the measurement ended with {code}")


def _version(release: str) -> str:
    return release.partition("==")[2]


def _check_right(run: Path, variant: str) -> None:
    """Check that a run has a variant with a right result, which a later release can be compared with.

    Raises:
      NotMeasuredError: It has none.
      UsageError: No case has a variant of this name.
    """
    try:
        cases = read_record(RunFolder(run).mark)["cases"]
    except (RecordError, KeyError) as error:
        raise NotMeasuredError(f"its run is not whole: {error}") from error
    variants = [each for case in cases for each in case["variants"]]
    names = sorted({each["name"] for each in variants})
    if variant and variants and variant not in names:
        raise UsageError(f"--variant {variant}: there is none of this name; variants: {', '.join(names)}")
    own = [each for each in variants if variant in ("", each["name"])]
    if not any(each["outcomes"].get("numerics", {}).get("status") == "ok" for each in own):
        raise NotMeasuredError(f"no variant has a right result{_find_reason(own)}")


def _find_reason(variants: Iterable[Mapping[str, Any]]) -> str:
    outcomes = (outcome for each in variants for outcome in each["outcomes"].values())
    return next((f": {outcome['status']}: {outcome['reason']}" for outcome in outcomes if outcome.get("reason")), "")
