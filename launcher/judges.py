"""How a release is judged: its environment is made, and a case measured in it beside the good one, or a command run."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from launcher.bisection import Answer, Judged
from launcher.bisects import TIME, BisectRequest
from launcher.criteria import Target, find_target, judge_by_code, judge_by_target, read_changes, tells
from launcher.options import UsageError

MEASURED = (0, 3)
"""Exit codes of the harness after which there is a run: of a whole one, and of one that lacks something."""

COMPARED = (0, 1, 3)
USAGE, INTERRUPTED = 2, 130

EXACT = ("--probe", "compilation", "--probe", "memory", "--processes", "1")
"""What follows from programs alone."""

Make = Callable[[str], Path]
"""Packages -> the python of an environment that holds them. Raises UsageError."""

Run = Callable[[Path, Sequence[str]], int]
"""Python and arguments of the harness -> its exit code."""

Compare = Callable[[Sequence[str]], int]
"""Arguments of `jaxmeter compare` -> its exit code."""


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
