"""The criterion of a bad release: the verdict of a comparison with the good release, or the exit code of a command."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxmeter.launch.bisection import Answer, Judged
from jaxmeter.launch.runs import MARK, read_record

PROGRAM = "program"

SKIPPED = 125
"""The exit code of a command that cannot decide, as for `git bisect run`."""

LAST_CODE = 127
"""Largest exit code about the release: larger ones come from the shell or a signal."""


@dataclass(frozen=True)
class Target:
    """The metric of a variant in which the bad release differs.

    Args:
      metric: Its name in a verdict, and in a record.
    """

    case: str
    variant: str
    metric: str

    @property
    def name(self) -> str:
        """The name for a person."""
        return f"{self.case} {self.variant}"


def read_changes(verdict: Path) -> list[Mapping[str, Any]]:
    """Return the findings that a comparison has written."""
    found: list[Mapping[str, Any]] = read_record(verdict)["changes"]
    return found


def find_target(changes: Sequence[Mapping[str, Any]], metric: str, variant: str) -> Target | None:
    """Return the metric in which the bad release differs the most; None if no difference is distinguishable.

    Args:
      metric: `program`, or the name of a metric in budgets.
      variant: The only variant that counts; any if it is empty.
    """
    own = [
        one
        for one in changes
        if one["budget"] == metric and variant in ("", one["variant"]) and one["finding"] in ("more", "less", "changed")
    ]
    if not own:
        return None
    worst = max(own, key=_size)
    return Target(worst["case"], worst["variant"], worst["metric"])


def _size(change: Mapping[str, Any]) -> float:
    effect = 1.0 if change["effect"] is None else change["effect"]["estimate"]
    return abs(math.log(effect)) if effect > 0 else math.inf


def tells(run: Path, target: Target) -> bool:
    """Return whether a run has the value of an exact criterion. A comparison lists neither equal nor missing values."""
    try:
        cases = read_record(run / MARK)["cases"]
    except (OSError, ValueError, KeyError):
        return False
    variants = [one for case in cases if case["name"] == target.case for one in case["variants"]]
    outcomes = [outcome for one in variants if one["name"] == target.variant for outcome in one["outcomes"].values()]
    if target.metric == PROGRAM:
        return any((outcome.get("details") or {}).get("fingerprint") for outcome in outcomes)
    return any(None not in (outcome["values"].get(target.metric) or [None]) for outcome in outcomes)


def judge_by_target(changes: Sequence[Mapping[str, Any]], target: Target) -> Judged:
    """Return whether a release is closer to the bad one or to the good one."""
    own = [one for one in changes if (one["case"], one["variant"]) == (target.case, target.variant)]
    decisive = [one for one in own if one["metric"] in ("", target.metric)]
    failed = next((one for one in decisive if one["finding"] in ("failed", "gone", "not comparable")), None)
    if failed is not None:
        return Judged(Answer.UNUSABLE, f"{target.name} is {failed['finding']}: {failed['reason']}")
    change = next((one for one in own if one["metric"] == target.metric), None)
    if change is None:
        return Judged(Answer.GOOD, "as in the good release")
    if change["finding"] == "inconclusive":
        return Judged(Answer.UNDECIDED, change["reason"])
    return Judged(Answer.BAD, _describe(change))


def _describe(change: Mapping[str, Any]) -> str:
    if change["before"] is None or change["after"] is None:
        return "another program than the good release's"
    return f"{change['before']:g} in the good release, {change['after']:g} here"


def judge_by_code(code: int) -> Judged:
    """Return the judgement of an exit code: 0 is good, 125 is undecided, anything else up to 127 is bad."""
    if code == 0:
        return Judged(Answer.GOOD, "the command ended with 0")
    if code == SKIPPED:
        return Judged(Answer.UNUSABLE, f"the command ended with {SKIPPED}: undecided")
    if 0 < code <= LAST_CODE:
        return Judged(Answer.BAD, f"the command ended with {code}")
    return Judged(Answer.UNUSABLE, f"the command was ended by a signal ({code})")
