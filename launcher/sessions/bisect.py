"""A bisection of releases: each is judged in an environment of its own, until two neighbours are left."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from launcher import bisection
from launcher.bisects import BisectRequest, read_bisect_request
from launcher.command_line import read_backend
from launcher.environments import read_wanted
from launcher.execution import say
from launcher.judges import JudgeByCase, JudgeByCommand
from launcher.locks import SMALLEST_LOCK
from launcher.measurements import check_packages
from launcher.releases import list_releases
from launcher.runs import new_run_id
from launcher.sessions.shell import FINE, NO_ANSWER, Shell, prepare_environment, run_elsewhere, run_jaxmeter


def find_first_bad(shell: Shell, arguments: Sequence[str]) -> int:
    """Judge releases between a good and a bad one until two neighbours are left; 0 where they are found.

    Raises:
      UsageError: What was asked cannot be done.
    """
    asked = read_bisect_request(arguments)
    backend, measuring = read_backend(asked.measuring)
    measuring = check_packages(measuring, "a bisection")
    releases = list_releases(asked.good, asked.bad)
    say(f"{len(releases)} releases: {', '.join(releases)}")
    shell.install(SMALLEST_LOCK)
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
