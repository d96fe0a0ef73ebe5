"""The measurements of a walk over releases: each run is made once and kept, and an interrupted one is finished."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxmeter.launch.options import UsageError, read_options
from jaxmeter.launch.predicates import read_changes
from jaxmeter.launch.runs import CAPTURE, MANIFEST, MARK, PROGRAMS, read_record
from jaxmeter.launch.sessions.shell import FINE, INTERRUPTED, NO_ANSWER, USAGE_ERROR
from jaxmeter.launch.walk import Change, UnusableError

MEASURED = (FINE, NO_ANSWER)
"""Exit codes of the harness after which there is a run: a whole one, and one that lacks something."""

COMPARED = (FINE, 1, NO_ANSWER)
"""Exit codes of a comparison that has written its findings."""

AGAIN = "-again"
"""How the name of a second measurement ends."""

Make = Callable[[str], Path]
"""Packages -> the python of an environment that holds them. Raises UsageError."""

Run = Callable[[Path, Sequence[str], Mapping[str, str]], int]
"""Python, arguments of the harness and environment variables of this program alone -> exit code."""

CompareRuns = Callable[[Sequence[str]], int]
"""Arguments of `jaxmeter compare` -> its exit code."""


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
    run: Run
    compare: CompareRuns
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
          UnusableError: It cannot be installed or measured, or the variant was not found right.
        """
        run = self._place(_version(release))
        self._measure(release, run, (*PROGRAMS, *CAPTURE))
        _check_right(run, self.variant)
        self._baselines[release] = run

    def __call__(
        self, before: str, after: str, attempt: int, variables: Mapping[str, str] | None = None
    ) -> list[Change]:
        """Measure a release in lock-step with an earlier one, and return the findings.

        Args:
          variables: Environment variables on the side of the later release.
        Raises:
          UnusableError: It cannot be installed, measured or compared.
        """
        baseline = self._baselines[before]
        setting = "".join(f"\n{name}={value}" for name, value in (variables or {}).items())
        variation = f"-with-{hashlib.sha256(setting.encode()).hexdigest()[:7]}" if variables else ""
        again = AGAIN if attempt else ""
        run = self._place(f"{_version(after)}-against-{_version(before)}{variation}{again}")
        options = ("--probe", "timing", *PROGRAMS, *CAPTURE, "--processes", str(self.processes * 2**attempt))
        self._measure(after, run, (*options, "--against", str(baseline)), before, variables or {})
        changes = compare_runs(self.compare, baseline, run)
        if not variables:
            self._pairs[before, after] = (baseline, run)
        self._baselines.setdefault(after, run)
        return [change for change in changes if not self.variant or change["variant"] in ("", self.variant)]

    def list_runs(self) -> list[Path]:
        """Return all runs, in the order in which they were measured."""
        return list(self._runs)

    def find_pair(self, before: str, after: str) -> tuple[Path, Path]:
        """Return the runs of two releases that were compared, of the last attempt."""
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
          UnusableError: An environment cannot be made, or the measurement failed.
          UsageError: A run that was interrupted cannot be finished.
        """
        if not (run / MARK).is_file():
            python = self._prepare(release)
            beside = ("--lock-step", str(self._prepare(before))) if before else ()
            if is_begun := (run / MANIFEST).is_file():
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
                raise UnusableError(str(error)) from error
        return self._pythons[release]


def check_measured(code: int) -> None:
    """Check the exit code of the harness.

    Raises:
      UnusableError: There is no run.
      KeyboardInterrupt: It was interrupted.
    """
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    if code not in MEASURED:
        raise UnusableError(f"the measurement ended with {code}")


def compare_runs(compare: CompareRuns, before: Path, after: Path) -> list[Change]:
    """Return the findings about two runs.

    Raises:
      UnusableError: The comparison failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        verdict = Path(folder, "verdict.json")
        code = compare((str(before), str(after), "--verdict", str(verdict)))
        if code not in COMPARED or not verdict.is_file():
            raise UnusableError(f"the comparison ended with {code}")
        return read_changes(verdict)


def _version(release: str) -> str:
    return release.partition("==")[2]


def _check_right(run: Path, variant: str) -> None:
    """Check that a run has a variant with a right result, which a later release can be compared with.

    Raises:
      UnusableError: It has none.
      UsageError: No case has a variant of this name.
    """
    try:
        cases = read_record(run / MARK)["cases"]
    except (OSError, ValueError, KeyError) as error:
        raise UnusableError(f"its run is not whole: {error}") from error
    variants = [one for case in cases for one in case["variants"]]
    names = sorted({one["name"] for one in variants})
    if variant and variants and variant not in names:
        raise UsageError(f"--variant {variant}: there is none of this name; variants: {', '.join(names)}")
    own = [one for one in variants if variant in ("", one["name"])]
    if not any(one["outcomes"].get("numerics", {}).get("status") == "ok" for one in own):
        raise UnusableError(f"no variant has a right result{_find_reason(own)}")


def _find_reason(variants: Iterable[Mapping[str, Any]]) -> str:
    outcomes = (outcome for one in variants for outcome in one["outcomes"].values())
    return next((f": {outcome['status']}: {outcome['reason']}" for outcome in outcomes if outcome.get("reason")), "")
