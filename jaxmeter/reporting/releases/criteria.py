"""The criterion of a bad release: the findings of a comparison with the good one, or the exit code of a command."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jaxmeter.harness.metrics.reading import Run

from ..compare.budgets import NAMES
from ..compare.exact import has_exact
from ..compare.findings import PROGRAM, WHOLE, Change, Finding
from .bisection import Answer, Judged

SKIPPED = 125
"""The exit code of a command that cannot decide, as for `git bisect run`."""

LAST_CODE = 127
"""Largest exit code about the release: larger ones come from the shell or a signal."""


@dataclass(frozen=True)
class Target:
    """The metric of a variant in which the bad release differs."""

    case: str
    variant: str
    metric: str

    @property
    def name(self) -> str:
        """The name for a person."""
        return f"{self.case} {self.variant}"


def find_target(changes: Sequence[Change], metric: str, variant: str) -> Target | None:
    """Return the metric in which the bad release differs the most; None if no difference is distinguishable.

    Args:
      metric: `program`, or the name of a metric in budgets.
      variant: The only variant that counts; any if it is empty.
    """
    wanted = PROGRAM if metric == PROGRAM else NAMES[metric]
    differing = (Finding.MORE, Finding.LESS, Finding.CHANGED)
    own = [
        change
        for change in changes
        if change.metric == wanted and variant in ("", change.variant) and change.finding in differing
    ]
    if not own:
        return None
    worst = max(own, key=_size)
    return Target(worst.case, worst.variant, worst.metric)


def _size(change: Change) -> float:
    effect = 1.0 if change.effect is None else change.effect.estimate
    return abs(math.log(effect)) if effect > 0 else math.inf


def has_value(run: Run, target: Target) -> bool:
    """Return whether a run has the value of an exact criterion. A comparison lists neither equal nor missing values."""
    return any(
        has_exact(variant, target.metric)
        for case in run.cases
        for variant in case.variants
        if (case.planned.name, variant.planned.name) == (target.case, target.variant)
    )


def judge_by_target(changes: Sequence[Change], target: Target) -> Judged:
    """Return whether a release is closer to the bad one or to the good one."""
    own = [change for change in changes if (change.case, change.variant) == (target.case, target.variant)]
    decisive = [change for change in own if change.metric in (WHOLE, target.metric)]
    failures = (Finding.FAILED, Finding.GONE, Finding.NOT_COMPARABLE)
    failed = next((change for change in decisive if change.finding in failures), None)
    if failed is not None:
        return Judged(Answer.UNUSABLE, f"{target.name} is {failed.finding}: {failed.reason}")
    change = next((change for change in own if change.metric == target.metric), None)
    if change is None:
        return Judged(Answer.GOOD, "as in the good release")
    if change.finding is Finding.INCONCLUSIVE:
        return Judged(Answer.UNDECIDED, change.reason)
    return Judged(Answer.BAD, _describe(change))


def _describe(change: Change) -> str:
    if change.before is None or change.after is None:
        return "another program than the good release's"
    return f"{change.before:g} in the good release, {change.after:g} here"


def judge_by_code(code: int) -> Judged:
    """Return the judgement of an exit code: 0 is good, 125 is undecided, anything else up to 127 is bad."""
    if code == 0:
        return Judged(Answer.GOOD, "the command ended with 0")
    if code == SKIPPED:
        return Judged(Answer.UNUSABLE, f"the command ended with {SKIPPED}: undecided")
    if 0 < code <= LAST_CODE:
        return Judged(Answer.BAD, f"the command ended with {code}")
    return Judged(Answer.UNUSABLE, f"the command was ended by a signal ({code})")
