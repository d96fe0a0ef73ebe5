"""The first of many releases that differs from a good one: by an exact number of a case, or by a command.

A criterion judges a release; which release is asked next, and what the answers add up to, follows from the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from jaxmeter.harness.metrics.reading import Run

from ..compare.budgets import NAMES
from ..compare.times import has_exact
from ..compare.verdicts import PROGRAM, WHOLE, Change, Verdict

SKIPPED = 125
"""The exit code of a command that cannot decide, as for `git bisect run`."""

LAST_CODE = 127
"""Largest exit code about the release: larger ones come from the shell or a signal."""


class BisectionAnswer(StrEnum):
    """The judgement of one release, compared with the good one."""

    GOOD = "good"
    BAD = "bad"
    UNDECIDED = "undecided"
    UNUSABLE = "unusable"


@dataclass(frozen=True)
class JudgedRelease:
    """An answer, and why."""

    answer: BisectionAnswer
    why: str


@dataclass(frozen=True)
class Bisected:
    """Between which two releases the change lies.

    Args:
      skipped: Releases between the two that could not be judged, with why.
      judged: Every answer, in the order in which they were asked for.
    """

    last_good: str
    first_bad: str
    skipped: tuple[tuple[str, str], ...] = ()
    judged: tuple[tuple[str, JudgedRelease], ...] = field(default=(), repr=False)


class NoDifferenceError(Exception):
    """The bad release cannot be distinguished from the good one; the message describes the results."""


Judge = Callable[[str], JudgedRelease]
"""Release -> answer."""


def bisect(releases: Sequence[str], judge: Judge, say: Callable[[str], object], *, asks_good: bool = False) -> Bisected:
    """Return the neighbouring releases between which the change is, as precisely as the answers allow.

    Args:
      releases: From the good one to the bad one, at least two.
      say: Receives a line about every answer.
      asks_good: Whether the first release is judged too, because the others are not compared with it.
    Raises:
      NoDifferenceError: The last release is not bad, or the first not good.
    """
    judged: list[tuple[str, JudgedRelease]] = []

    def ask(index: int) -> JudgedRelease:
        verdict = judge(releases[index])
        say(f"{releases[index]} is {verdict.answer}: {verdict.why}")
        judged.append((releases[index], verdict))
        return verdict

    good, bad = 0, len(releases) - 1
    if asks_good and (first := ask(good)).answer is not BisectionAnswer.GOOD:
        raise NoDifferenceError(f"{releases[good]} is {first.answer}, though it is the good release: {first.why}")
    last = ask(bad)
    if last.answer is not BisectionAnswer.BAD:
        raise NoDifferenceError(f"{releases[bad]} is {last.answer}, compared with {releases[good]}: {last.why}")
    skipped: dict[int, str] = {}
    while open_to := [index for index in range(good + 1, bad) if index not in skipped]:
        middle = min(open_to, key=lambda index: (abs(2 * index - good - bad), index))
        verdict = ask(middle)
        if verdict.answer is BisectionAnswer.GOOD:
            good = middle
        elif verdict.answer is BisectionAnswer.BAD:
            bad = middle
        else:
            skipped[middle] = verdict.why
    between = tuple((releases[index], skipped[index]) for index in range(good + 1, bad))
    return Bisected(releases[good], releases[bad], between, tuple(judged))


def describe(bisected: Bisected) -> list[str]:
    """What was found, a sentence a line."""
    lines = [f"first bad: {bisected.first_bad}; last good: {bisected.last_good}"]
    lines += [f"between them {release} could not be judged: {why}" for release, why in bisected.skipped]
    if bisected.skipped:
        lines.append("so the change came with one of these, or with the first bad one")
    return lines


@dataclass(frozen=True)
class BisectionTarget:
    """The metric of a variant in which the bad release differs."""

    case: str
    variant: str
    metric: str

    @property
    def name(self) -> str:
        """The name for a person."""
        return f"{self.case} {self.variant}"


def find_target(changes: Sequence[Change], metric: str, variant: str) -> BisectionTarget | None:
    """Return the metric in which the bad release differs the most; None if no difference is distinguishable.

    Args:
      metric: `program`, or the name of a metric in budgets.
      variant: The only variant that counts; any if it is empty.
    """
    wanted = PROGRAM if metric == PROGRAM else NAMES[metric]
    own = [
        change
        for change in changes
        if change.metric == wanted and variant in ("", change.variant) and change.verdict.is_exact
    ]
    if not own:
        return None
    worst = max(own, key=lambda change: change.size)
    return BisectionTarget(worst.case, worst.variant, worst.metric)


def has_value(run: Run, target: BisectionTarget) -> bool:
    """Return whether a run has the value of an exact criterion. A comparison lists neither equal nor missing values."""
    return any(
        has_exact(variant, target.metric)
        for case in run.cases
        for variant in case.variants
        if (case.planned.name, variant.planned.name) == (target.case, target.variant)
    )


def judge_by_target(changes: Sequence[Change], target: BisectionTarget) -> JudgedRelease:
    """Return whether a release is closer to the bad one or to the good one."""
    own = [change for change in changes if (change.case, change.variant) == (target.case, target.variant)]
    decisive = [change for change in own if change.metric in (WHOLE, target.metric)]
    failed = next((change for change in decisive if change.verdict.is_failure), None)
    if failed is not None:
        return JudgedRelease(BisectionAnswer.UNUSABLE, f"{target.name} is {failed.verdict}: {failed.reason}")
    change = next((change for change in own if change.metric == target.metric), None)
    if change is None:
        return JudgedRelease(BisectionAnswer.GOOD, "as in the good release")
    if change.verdict is Verdict.INCONCLUSIVE:
        return JudgedRelease(BisectionAnswer.UNDECIDED, change.reason)
    return JudgedRelease(BisectionAnswer.BAD, _describe(change))


def _describe(change: Change) -> str:
    if change.before is None or change.after is None:
        return "another program than the good release's"
    return f"{change.before:g} in the good release, {change.after:g} here"


def judge_by_code(code: int) -> JudgedRelease:
    """Return the judgement of an exit code: 0 is good, 125 is undecided, anything else up to 127 is bad."""
    if code == 0:
        return JudgedRelease(BisectionAnswer.GOOD, "the command ended with 0")
    if code == SKIPPED:
        return JudgedRelease(BisectionAnswer.UNUSABLE, f"the command ended with {SKIPPED}: undecided")
    if 0 < code <= LAST_CODE:
        return JudgedRelease(BisectionAnswer.BAD, f"the command ended with {code}")
    return JudgedRelease(BisectionAnswer.UNUSABLE, f"the command was ended by a signal ({code})")
