"""Compare: Find the releases that changed a case."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from jaxmeter.cli.launching import FORWARDS, end, list_words, make_shell
from jaxmeter.document import terminal
from jaxmeter.harness.record import make_run_id
from jaxmeter.launch.bisect import (
    PROCESSES,
    REFUSED,
    TRY,
    BisectRequest,
    CallHarness,
    Make,
    Neighbours,
    NotMeasuredError,
    check_measured,
    make_environment_of,
    read_bisect_request,
)
from jaxmeter.launch.command_line import check_names, check_packages, read_backend
from jaxmeter.launch.execution import say
from jaxmeter.launch.images import SMALLEST_LOCK
from jaxmeter.launch.options import UsageError, read_options
from jaxmeter.launch.releases import list_releases
from jaxmeter.launch.request import name_command
from jaxmeter.launch.runs import EXACT
from jaxmeter.launch.shell import FINE, NO_ANSWER, Shell, check_selection, run_elsewhere, run_jaxmeter, say_disk
from jaxmeter.reporting.compare.budgets import TIME_BUDGET
from jaxmeter.reporting.compare.changes import compare_runs
from jaxmeter.reporting.compare.verdicts import WHOLE, Change
from jaxmeter.reporting.load import load
from jaxmeter.reporting.releases import (
    BisectionAnswer,
    BisectionTarget,
    Judge,
    JudgedRelease,
    NoDifferenceError,
    UnusableError,
    Walk,
    WalkStep,
    bisect,
    compare_pair,
    describe_bisection,
    describe_trial,
    describe_walk,
    find_target,
    has_value,
    judge_by_code,
    judge_by_target,
    walk,
)

SETTINGS = FORWARDS

Release = Annotated[str | None, typer.Option(metavar="RELEASE", help="One package with its version: jax==0.12.0.")]

Compare = Callable[[Path, Path], Sequence[Change]]
"""Folders of two runs -> what changed. Raises UnusableError."""


def command(
    context: typer.Context,
    good: Release = None,
    bad: Release = None,
    case: Annotated[str | None, typer.Option(metavar="GLOB", help="The case that changed, as of --select.")] = None,
    variant: Annotated[str | None, typer.Option(metavar="NAME", help="Its only variant that counts.")] = None,
    metric: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="time (default), program, or a metric of budgets, such as peak_memory."),
    ] = None,
    shell_command: Annotated[
        str | None,
        typer.Option("--command", metavar="COMMAND", help="A shell command that ends with 0 in a good release."),
    ] = None,
    processes: Annotated[
        str | None, typer.Option(metavar="N", help=f"Processes of each step of a walk; default: {PROCESSES}.")
    ] = None,
    resume: Annotated[str | None, typer.Option(metavar="NAME", help="Continue an interrupted walk.")] = None,
    python: Annotated[str | None, typer.Option(metavar="PATH", help="Interpreter of all environments.")] = None,
    try_env: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A variable that may undo the first slower step; repeatable."),
    ] = None,
) -> None:
    """Other options are those of `jaxmeter run`. Exit code 0: a change was found; 3: none is confirmed."""
    words = list_words(context)
    end(lambda: bisect_releases(make_shell(words), words))


def compare_folders(before: Path, after: Path) -> Sequence[Change]:
    """Return what changed between the runs of two folders.

    Raises:
      UnusableError: One cannot be read.
    """
    runs = [load([folder]) for folder in (before, after)]
    if not all(loaded.runs for loaded in runs):
        warnings = [warning for loaded in runs for warning in loaded.warnings]
        raise UnusableError(f"the comparison failed: {'; '.join(warnings)}")
    return compare_runs(runs[0].runs[0], runs[1].runs[0]).entries


def bisect_releases(shell: Shell, arguments: Sequence[str]) -> int:
    """Find the releases between a good and a bad one that changed a case; 0 where there is one, 3 where there is none.

    Raises:
      UsageError: What was asked cannot be done.
    """
    asked = read_bisect_request(arguments, TIME_BUDGET)
    backend, measuring = read_backend(asked.measuring)
    measuring = check_packages(measuring, "a bisection", REFUSED)
    selected = (*measuring, "--select", asked.case) if asked.case else tuple(measuring)
    check_names(shell.checkout, selected, "--case")
    releases = list_releases(asked.good, asked.bad, asked.python)
    say(f"{len(releases)} releases: {', '.join(releases)}")
    shell.install(SMALLEST_LOCK)
    variables = [word for name, value in asked.variables.items() for word in (TRY, f"{name}={value}")]
    if code := run_jaxmeter(shell, "limits", "--metric", asked.metric, *variables):
        return code
    if "--suites" not in read_options(measuring, "--suites"):  # suites of users may need packages of their own
        check_selection(shell, "python", backend, selected)
    if asked.is_walk:
        return _walk(shell, asked, releases, backend, measuring)
    try:
        judge = _make_judge(shell, asked, backend, measuring)
        bisected = bisect(releases, judge, say, asks_good=bool(asked.command))
    except NoDifferenceError as error:
        say(f"error: {error}; there is nothing to bisect")
        return NO_ANSWER
    for line in describe_bisection(bisected):
        say(line)
    say_disk(shell)
    return FINE


def _walk(shell: Shell, asked: BisectRequest, releases: Sequence[str], backend: str, measuring: Sequence[str]) -> int:
    """Measure all releases, each in lock-step with its neighbour; say what changed between them.

    Raises:
      UsageError: The good release cannot be measured.
    """
    name = asked.resumed or make_run_id(backend)
    say(f"runs: {asked.out / name}-…; to go on after an interruption, give the same command with --resume {name}")
    neighbours = Neighbours(
        asked.out / name,
        ("--backend", backend, *measuring, "--select", asked.case),
        asked.processes,
        make=lambda packages: make_environment_of(shell, packages, asked.python),
        run=lambda python, words, variables: run_elsewhere(shell, python, *words, variables=variables),
        variant=asked.variant,
    )
    try:
        neighbours.begin(releases[0])
    except NotMeasuredError as error:
        raise UsageError(f"{releases[0]} cannot be measured: {error}") from error
    result = walk(releases, CompareReleases(neighbours, compare_folders), say)
    terminal.show(describe_walk(result), terminal.open_console(stderr=True))
    runs = neighbours.list_runs()  # a page is not of the variables that are tried
    for line in _try_variables(result, neighbours, asked.variables):
        say(line)
    say_disk(shell)
    if (slowest := result.most_slower) is not None:
        for line in _describe_next_steps(neighbours, *slowest):
            say(line)
    say(f"runs: {asked.out / name}-…; one page of all: {name_command('report', *map(str, runs))}")
    return FINE if result.has_change_point else NO_ANSWER


@dataclass(frozen=True)
class CompareReleases:
    """Measures two releases and compares them.

    Args:
      variables: Environment variables on the side of the later release.
    """

    neighbours: Neighbours
    compare: Compare
    variables: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, before: str, after: str, attempt: int) -> list[Change]:
        """Return the changes of the variants that count.

        Raises:
          UnusableError: A release cannot be measured, or the runs cannot be compared.
        """
        try:
            runs = self.neighbours(before, after, attempt, self.variables)
        except NotMeasuredError as error:
            raise UnusableError(str(error)) from error
        variant = self.neighbours.variant
        return [change for change in self.compare(*runs) if variant == "" or change.variant in (WHOLE, variant)]


def _describe_next_steps(neighbours: Neighbours, step: WalkStep, change: Change) -> Iterator[str]:
    """Write the commands that compare the programs of both releases of a step, and that pack them for a bug report."""
    earlier, later = map(str, neighbours.find_pair(step.before, step.after))
    which = ("--case", change.case, "--variant", change.variant)
    diff, reproduce = (("diff", earlier, later, *which), ("reproduce", later, "--before", earlier, *which))
    yield f"largest slowdown: {step.after}, compared with {step.before}"
    yield f"  fusions, layouts and library calls that differ: {name_command(*diff)}"
    yield f"  both programs and their numbers, for a bug report: {name_command(*reproduce)}"


def _try_variables(result: Walk, neighbours: Neighbours, variables: Mapping[str, str]) -> Sequence[str]:
    """Measure the first slower step again with environment variables of the slower release; what they do, in lines."""
    if not variables:
        return ()
    setting = " ".join(f"{name}={value}" for name, value in variables.items())
    step = result.first_slower
    if step is None:
        return (f"{setting} was not tried: no step is confirmed slower",)
    try:
        trial = compare_pair(step.before, step.after, CompareReleases(neighbours, compare_folders, variables), say)
    except UnusableError as error:
        return (f"{step.after} with {setting} cannot be compared with {step.before}: {error}",)
    return tuple(describe_trial(step, trial, setting))


def _make_judge(shell: Shell, asked: BisectRequest, backend: str, measuring: Sequence[str]) -> Judge:
    """Return the criterion of a bad release; if it is a case, measure the good release now."""

    def make(packages: str) -> Path:
        return make_environment_of(shell, packages, asked.python)

    if asked.command:
        return JudgeByCommand(asked.command, make)
    judge = JudgeByCase(
        asked,
        backend,
        measuring,
        make_run_id(backend),
        make,
        run=lambda python, words, variables: run_elsewhere(shell, python, *words, variables=variables),
        compare=compare_folders,
    )
    judge.begin()
    return judge


@dataclass
class JudgeByCase:
    """Compares exact numbers of a case in each release with those of the good one.

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
    run: CallHarness
    compare: Compare
    target: BisectionTarget | None = None

    def has_value(self, folder: Path, target: BisectionTarget) -> bool:
        """Return whether the run in a folder has the value."""
        loaded = load([folder])
        return any(has_value(run, target) for run in loaded.runs)

    def begin(self) -> None:
        """Measures the good release.

        Raises:
          UsageError: That is not possible.
        """
        self._before = self.asked.out / f"{self.name}-good"
        try:
            self._measure(self.asked.good, self._before)
        except NotMeasuredError as error:
            raise UsageError(f"{self.asked.good} cannot be measured: {error}") from error

    def __call__(self, release: str) -> JudgedRelease:
        """Whether a release is good or bad."""
        after = self.asked.out / f"{self.name}-{release.partition('==')[2]}"
        try:
            self._measure(release, after)
            changes = self.compare(self._before, after)
        except (NotMeasuredError, UnusableError, UsageError) as error:
            return JudgedRelease(BisectionAnswer.UNUSABLE, str(error))
        self.target = self.target or find_target(changes, self.asked.metric, self.asked.variant)
        if self.target is None:
            return JudgedRelease(BisectionAnswer.UNDECIDED, f"no difference of {self.asked.metric} is reported")
        judged = judge_by_target(changes, self.target)
        if judged.answer is BisectionAnswer.GOOD and not self.has_value(after, self.target):
            return JudgedRelease(BisectionAnswer.UNUSABLE, f"it has no {self.asked.metric} of {self.target.name}")
        return judged

    def _measure(self, release: str, folder: Path) -> None:
        what = ("run", "--backend", self.backend, *self.measuring, "--select", self.asked.case)
        check_measured(self.run(self.make(release), (*what, *EXACT, "--run-id", folder.name), {}))


@dataclass(frozen=True)
class JudgeByCommand:
    """Runs a command in the environment of each release, whose python comes first in PATH."""

    command: str
    make: Make

    def __call__(self, release: str) -> JudgedRelease:
        """Whether a release is good or bad, by the exit code."""
        try:
            python = self.make(release)
        except UsageError as error:
            return JudgedRelease(BisectionAnswer.UNUSABLE, str(error))
        path = os.pathsep.join((str(python.parent), os.environ.get("PATH", "")))
        environment = {**os.environ, "PATH": path, "VIRTUAL_ENV": str(python.parent.parent)}
        # The user's own words, as for `git bisect run`: a shell is what they are written for.
        ended = subprocess.run(self.command, shell=True, env=environment, check=False)
        return judge_by_code(ended.returncode)
