"""A bisection of releases: each is judged in an environment of its own, until two neighbours are left."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from launcher import bisection
from launcher.bisection import Answer, Judged
from launcher.command_line import REASONS, check_packages, read_backend
from launcher.environments import read_wanted
from launcher.execution import say
from launcher.locks import SMALLEST_LOCK
from launcher.options import UsageError, read_options
from launcher.predicates import TIME, Target, find_target, judge_by_code, judge_by_target, read_changes, tells
from launcher.releases import list_releases
from launcher.runs import DEFAULT_OUT, EXACT, new_run_id
from launcher.sessions.shell import (
    FINE,
    INTERRUPTED,
    NO_ANSWER,
    Shell,
    prepare_environment,
    run_elsewhere,
    run_jaxmeter,
)

OWN = ("--good", "--bad", "--case", "--variant", "--metric", "--command", "--processes")

REFUSED = REASONS | {
    "--old": "a bisection has a good release: --good",
    "--new": "a bisection has a bad release: --bad",
    "--lock-step": "that is the good release: --good",
    "--probe": "the criterion decides: --metric",
    "--select": "name one case: --case",
}

PROCESSES = 8
"""Of a step by time; a step that is undecided is repeated with twice as many."""

MEASURED = (FINE, NO_ANSWER)
"""Exit codes of the harness after which there is a run: of a whole one, and of one that lacks something."""

COMPARED = (FINE, 1, NO_ANSWER)

Make = Callable[[str], Path]
"""Packages -> the python of an environment that holds them. Raises UsageError."""

Run = Callable[[Path, Sequence[str]], int]
"""Python and arguments of the harness -> its exit code."""

Compare = Callable[[Sequence[str]], int]
"""Arguments of `jaxmeter compare` -> its exit code."""


@dataclass(frozen=True)
class BisectRequest:
    """A bisection.

    Args:
      case: A pattern, as of `--select`; empty where a command decides.
      variant: Its name; empty where the one that differs the most is meant.
      metric: `time`, `program`, or what a budget calls a metric.
      command: A shell command that tells; empty where a case does.
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
    measuring: tuple[str, ...]
    out: Path


def read_bisect_request(arguments: Sequence[str]) -> BisectRequest:
    """Return what `--good RELEASE --bad RELEASE --case NAME [--variant NAME] [--metric NAME] …`, or `--command`, asks.

    Raises:
      UsageError: Something is missing, contradicts itself, or is what a bisection does not take.
    """
    given = read_options(arguments, *OWN, "--out", refused=REFUSED)
    good, bad, case, variant, metric, command, processes = (given.get(name) or "" for name in OWN)
    example = 'nox -s bisect -- --good "jax==0.9.0" --bad "jax==0.10.2" --case "mlp_step[…]"'
    if not good or not bad:
        raise UsageError(f"name a good and a bad release: {example}")
    if bool(case) == bool(command):
        raise UsageError(
            f"say what tells a bad release, a case or a command: {example}, or --command 'python check.py'"
        )
    if command and (metric or variant):
        raise UsageError("--command decides by its exit code; leave out --metric and --variant")
    return BisectRequest(
        good=good,
        bad=bad,
        case=case,
        variant=variant,
        metric=metric or TIME,
        command=command,
        processes=_read_processes(processes),
        measuring=(*given.rest, *given.list_words("--out")),
        out=Path(given.get("--out") or DEFAULT_OUT),
    )


def find_first_bad(shell: Shell, arguments: Sequence[str]) -> int:
    """Judge releases between a good and a bad one until two neighbours are left; 0 where they are found.

    Raises:
      UsageError: What was asked cannot be done.
    """
    asked = read_bisect_request(arguments)
    backend, measuring = read_backend(asked.measuring)
    measuring = check_packages(measuring, "a bisection", REFUSED)
    releases = list_releases(asked.good, asked.bad)
    say(f"{len(releases)} releases: {', '.join(releases)}")
    shell.install(SMALLEST_LOCK)
    if code := run_jaxmeter(shell, "limits", "--metric", asked.metric):
        return code
    try:
        judge = _make_judge(shell, asked, backend, measuring)
        found = bisection.bisect(releases, judge, say, asks_good=bool(asked.command))
    except bisection.NoDifferenceError as error:
        say(f"error: {error}; there is nothing to bisect")
        return NO_ANSWER
    for line in bisection.describe(found):
        say(line)
    return FINE


def _make_judge(shell: Shell, asked: BisectRequest, backend: str, measuring: Sequence[str]) -> bisection.Judge:
    """What tells a bad release; the good one is measured now, where a case does."""

    def make(packages: str) -> Path:
        return prepare_environment(shell, read_wanted(packages))

    if asked.command:
        return JudgeByCommand(asked.command, make)
    judge = JudgeByCase(
        asked,
        backend,
        measuring,
        new_run_id(backend),
        make,
        run=lambda python, words: run_elsewhere(shell, python, *words),
        compare=lambda words: run_jaxmeter(shell, "compare", *words),
    )
    judge.begin()
    return judge


@dataclass
class JudgeByCase:
    """Measures a case in each release, beside the good one.

    Args:
      backend, measuring: Where and what is measured, as options of the harness.
      name: Of the runs, to which the release is added.
      target: What the bad release differs in, once it was judged, which must come first.
    """

    asked: BisectRequest
    backend: str
    measuring: Sequence[str]
    name: str
    make: Make
    run: Run
    compare: Compare
    target: Target | None = None

    def begin(self) -> None:
        """Measures the good release.

        Raises:
          UsageError: That is not possible.
        """
        self._good = self.make(self.asked.good)
        self._before = self.asked.out / f"{self.name}-good"
        options = ("--probe", "memory") if self._is_by_time else EXACT
        code = self._measure(self._good, self._before, options)
        if code not in MEASURED:
            raise UsageError(f"{self.asked.good} cannot be measured: the measurement ended with {code}")

    def __call__(self, release: str, attempt: int) -> Judged:
        """Whether a release is good or bad; the second attempt has twice the processes."""
        try:
            python = self.make(release)
        except UsageError as error:
            return Judged(Answer.UNUSABLE, str(error))
        after = self.asked.out / f"{self.name}-{release.partition('==')[2]}{f'-{attempt + 1}' if attempt else ''}"
        processes = str(self.asked.processes * 2**attempt)
        beside = ("--probe", "timing", "--against", str(self._before), "--lock-step", str(self._good))
        code = self._measure(python, after, (*beside, "--processes", processes) if self._is_by_time else EXACT)
        if code not in MEASURED:
            return Judged(Answer.UNUSABLE, f"the measurement ended with {code}")
        return self._judge(after)

    @property
    def _is_by_time(self) -> bool:
        return self.asked.metric == TIME

    def _measure(self, python: Path, folder: Path, options: Sequence[str]) -> int:
        what = ("run", "--backend", self.backend, *self.measuring, "--select", self.asked.case)
        code = self.run(python, (*what, *options, "--run-id", folder.name))
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        return code

    def _judge(self, after: Path) -> Judged:
        with tempfile.TemporaryDirectory() as folder:
            verdict = Path(folder, "verdict.json")
            code = self.compare((str(self._before), str(after), "--verdict", str(verdict)))
            if code not in COMPARED:
                return Judged(Answer.UNUSABLE, f"the comparison ended with {code}")
            changes = read_changes(verdict)
        self.target = self.target or find_target(changes, self.asked.metric, self.asked.variant)
        if self.target is None:
            return Judged(Answer.UNDECIDED, f"no difference of {self.asked.metric} is told")
        found = judge_by_target(changes, self.target)
        if found.answer is Answer.GOOD and not self._is_by_time and not tells(after, self.target):
            return Judged(Answer.UNUSABLE, f"it tells no {self.asked.metric} of {self.target.name}")
        return found


@dataclass(frozen=True)
class JudgeByCommand:
    """Runs a command in the environment of each release, whose python comes first in PATH."""

    command: str
    make: Make

    def __call__(self, release: str, attempt: int) -> Judged:
        """Whether a release is good or bad, by the exit code."""
        try:
            python = self.make(release)
        except UsageError as error:
            return Judged(Answer.UNUSABLE, str(error))
        path = os.pathsep.join((str(python.parent), os.environ.get("PATH", "")))
        environment = {**os.environ, "PATH": path, "VIRTUAL_ENV": str(python.parent.parent)}
        # The user's own words, as for `git bisect run`: a shell is what they are written for.
        ended = subprocess.run(self.command, shell=True, env=environment, check=False)
        return judge_by_code(ended.returncode)


def _read_processes(text: str) -> int:
    if not text:
        return PROCESSES
    if not text.isascii() or not text.isdigit() or int(text) < 3:
        raise UsageError(f"--processes '{text}' is no number from 3 on")
    return int(text)
