"""What a bisection of releases is asked: times by a walk over all of them, exact numbers and commands by halves."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from jaxmeter.launch import bisection
from jaxmeter.launch.bisection import Answer, Judged
from jaxmeter.launch.command_line import REASONS, check_packages, read_backend
from jaxmeter.launch.environments import ask_version, read_wanted
from jaxmeter.launch.execution import say
from jaxmeter.launch.locks import SMALLEST_LOCK
from jaxmeter.launch.options import UsageError, read_options
from jaxmeter.launch.predicates import Target, find_target, judge_by_code, judge_by_target, tells
from jaxmeter.launch.releases import list_releases
from jaxmeter.launch.runs import DEFAULT_OUT, EXACT, new_run_id
from jaxmeter.launch.selections import check_names
from jaxmeter.launch.sessions.neighbours import CompareRuns, Make, Neighbours, Run, check_measured, compare_runs
from jaxmeter.launch.sessions.shell import (
    FINE,
    NO_ANSWER,
    Shell,
    check_selection,
    prepare_environment,
    run_elsewhere,
    run_jaxmeter,
    say_disk,
)
from jaxmeter.launch.sessions.upgrade import read_variables
from jaxmeter.launch.walk import TIME, Change, Step, UnusableError, Walk, compare_pair, describe, describe_trial, walk

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
      metric: `time`, `program`, or the name of a metric in budgets.
      command: A shell command that decides; empty if a case decides.
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
    resumed: str
    python: str
    variables: Mapping[str, str]
    measuring: tuple[str, ...]
    out: Path

    @property
    def is_walk(self) -> bool:
        """Whether times decide: then there may be several change points, and halving would miss some."""
        return self.metric == TIME and not self.command


def read_bisect_request(arguments: Sequence[str]) -> BisectRequest:
    """Return what `--good RELEASE --bad RELEASE --case NAME [--variant NAME] [--metric NAME] …`, or `--command`, asks.

    Raises:
      UsageError: Something is missing, contradicts itself, or is what a bisection does not take.
    """
    given = read_options(arguments, *OWN, TRY, "--out", refused=REFUSED)
    good, bad, case, variant, metric, command, processes, resumed, python = (given.get(name) or "" for name in OWN)
    example = 'nox -s bisect -- --good "jax==0.9.0" --bad "jax==0.12.0.1" --case "mlp_step[…]"'
    if not good or not bad:
        raise UsageError(f"name a good and a bad release: {example}")
    if bool(case) == bool(command):
        raise UsageError(
            f"give what identifies a bad release, a case or a command: {example}, or --command 'python check.py'"
        )
    if command and (metric or variant):
        raise UsageError("--command decides by its exit code; leave out --metric and --variant")
    of_times = next((name for name in OF_TIMES if name in given), None)
    if of_times is not None and (command or metric not in ("", TIME)):
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
        metric=metric or TIME,
        command=command,
        processes=_read_processes(processes),
        resumed=resumed,
        python=python or sys.executable,
        variables=read_variables(TRY, given.values.get(TRY, ())),
        measuring=(*given.rest, *given.list_words("--out")),
        out=out,
    )


def bisect_releases(shell: Shell, arguments: Sequence[str]) -> int:
    """Find the releases between a good and a bad one that changed a case; 0 where there is one, 3 where there is none.

    Raises:
      UsageError: What was asked cannot be done.
    """
    asked = read_bisect_request(arguments)
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
        found = bisection.bisect(releases, judge, say, asks_good=bool(asked.command))
    except bisection.NoDifferenceError as error:
        say(f"error: {error}; there is nothing to bisect")
        return NO_ANSWER
    for line in bisection.describe(found):
        say(line)
    say_disk(shell)
    return FINE


def _walk(shell: Shell, asked: BisectRequest, releases: Sequence[str], backend: str, measuring: Sequence[str]) -> int:
    """Measure all releases, each in lock-step with its neighbour; say what changed between them.

    Raises:
      UsageError: The good release cannot be measured.
    """
    name = asked.resumed or new_run_id(backend)
    say(f"runs: {asked.out / name}-…; to go on after an interruption, give the same command with --resume {name}")
    neighbours = Neighbours(
        asked.out / name,
        ("--backend", backend, *measuring, "--select", asked.case),
        asked.processes,
        make=lambda packages: _make_environment(shell, packages, asked.python),
        run=lambda python, words, variables: run_elsewhere(shell, python, *words, variables=variables),
        compare=lambda words: run_jaxmeter(shell, "compare", *words),
        variant=asked.variant,
    )
    try:
        neighbours.begin(releases[0])
    except UnusableError as error:
        raise UsageError(f"{releases[0]} cannot be measured: {error}") from error
    result = walk(releases, neighbours, say)
    for line in describe(result):
        say(line)
    runs = neighbours.list_runs()  # a page is not of the variables that are tried
    for line in _try_variables(result, neighbours, asked.variables):
        say(line)
    say_disk(shell)
    if (slowest := result.most_slower) is not None:
        for line in _describe_next_steps(neighbours, *slowest):
            say(line)
    say(f"runs: {asked.out / name}-…; one page of all: nox -s report -- {shlex.join(map(str, runs))}")
    return FINE if result.has_change_point else NO_ANSWER


def _describe_next_steps(neighbours: Neighbours, step: Step, change: Change) -> Iterator[str]:
    """Write the commands that compare the programs of both releases of a step, and that pack them for a bug report."""
    earlier, later = map(str, neighbours.find_pair(step.before, step.after))
    one = ("--case", change["case"], "--variant", change["variant"])
    diff, reproduce = (("diff", earlier, later, *one), ("reproduce", later, "--before", earlier, *one))
    yield f"largest slowdown: {step.after}, compared with {step.before}"
    yield f"  fusions, layouts and library calls that differ: nox -s report -- {shlex.join(diff)}"
    yield f"  both programs and their numbers, for a bug report: nox -s report -- {shlex.join(reproduce)}"


def _try_variables(result: Walk, neighbours: Neighbours, variables: Mapping[str, str]) -> Sequence[str]:
    """Measure the first slower step again with environment variables of the slower release; what they do, in lines."""
    if not variables:
        return ()
    setting = " ".join(f"{name}={value}" for name, value in variables.items())
    step = result.first_slower
    if step is None:
        return (f"{setting} was not tried: no step is confirmed slower",)
    try:
        trial = compare_pair(step.before, step.after, partial(neighbours, variables=variables), say)
    except UnusableError as error:
        return (f"{step.after} with {setting} cannot be compared with {step.before}: {error}",)
    return tuple(describe_trial(step, trial, setting))


def _make_environment(shell: Shell, packages: str, python: str) -> Path:
    return prepare_environment(shell, replace(read_wanted(packages), python=python))


def _make_judge(shell: Shell, asked: BisectRequest, backend: str, measuring: Sequence[str]) -> bisection.Judge:
    """Return the criterion of a bad release; if it is a case, measure the good release now."""

    def make(packages: str) -> Path:
        return _make_environment(shell, packages, asked.python)

    if asked.command:
        return JudgeByCommand(asked.command, make)
    judge = JudgeByCase(
        asked,
        backend,
        measuring,
        new_run_id(backend),
        make,
        run=lambda python, words, variables: run_elsewhere(shell, python, *words, variables=variables),
        compare=lambda words: run_jaxmeter(shell, "compare", *words),
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
    run: Run
    compare: CompareRuns
    target: Target | None = None

    def begin(self) -> None:
        """Measures the good release.

        Raises:
          UsageError: That is not possible.
        """
        self._before = self.asked.out / f"{self.name}-good"
        try:
            self._measure(self.asked.good, self._before)
        except UnusableError as error:
            raise UsageError(f"{self.asked.good} cannot be measured: {error}") from error

    def __call__(self, release: str) -> Judged:
        """Whether a release is good or bad."""
        after = self.asked.out / f"{self.name}-{release.partition('==')[2]}"
        try:
            self._measure(release, after)
            changes = compare_runs(self.compare, self._before, after)
        except (UnusableError, UsageError) as error:
            return Judged(Answer.UNUSABLE, str(error))
        self.target = self.target or find_target(changes, self.asked.metric, self.asked.variant)
        if self.target is None:
            return Judged(Answer.UNDECIDED, f"no difference of {self.asked.metric} is reported")
        judged = judge_by_target(changes, self.target)
        if judged.answer is Answer.GOOD and not tells(after, self.target):
            return Judged(Answer.UNUSABLE, f"it has no {self.asked.metric} of {self.target.name}")
        return judged

    def _measure(self, release: str, folder: Path) -> None:
        what = ("run", "--backend", self.backend, *self.measuring, "--select", self.asked.case)
        check_measured(self.run(self.make(release), (*what, *EXACT, "--run-id", folder.name), {}))


@dataclass(frozen=True)
class JudgeByCommand:
    """Runs a command in the environment of each release, whose python comes first in PATH."""

    command: str
    make: Make

    def __call__(self, release: str) -> Judged:
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


def _list_runs(out: Path, name: str) -> list[str]:
    """Return the names of the runs of a walk."""
    return [path.name for path in out.iterdir() if path.name.startswith(f"{name}-")] if out.is_dir() else []


def _read_processes(text: str) -> int:
    if not text:
        return PROCESSES
    if not text.isascii() or not text.isdigit() or int(text) < 3:
        raise UsageError(f"--processes '{text}' must be an integer ≥ 3")
    return int(text)
