"""The first of many releases that differs from a good one: which is asked next, and what the answers add up to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class Answer(StrEnum):
    """The judgement of one release, compared with the good one."""

    GOOD = "good"
    BAD = "bad"
    UNDECIDED = "undecided"
    UNUSABLE = "unusable"


@dataclass(frozen=True)
class Judged:
    """An answer, and why."""

    answer: Answer
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
    judged: tuple[tuple[str, Judged], ...] = field(default=(), repr=False)


class NoDifferenceError(Exception):
    """The bad release cannot be distinguished from the good one; the message describes the results."""


Judge = Callable[[str], Judged]
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
    judged: list[tuple[str, Judged]] = []

    def ask(index: int) -> Judged:
        found = judge(releases[index])
        say(f"{releases[index]} is {found.answer}: {found.why}")
        judged.append((releases[index], found))
        return found

    good, bad = 0, len(releases) - 1
    if asks_good and (first := ask(good)).answer is not Answer.GOOD:
        raise NoDifferenceError(f"{releases[good]} is {first.answer}, though it is the good release: {first.why}")
    last = ask(bad)
    if last.answer is not Answer.BAD:
        raise NoDifferenceError(f"{releases[bad]} is {last.answer}, compared with {releases[good]}: {last.why}")
    skipped: dict[int, str] = {}
    while open_to := [index for index in range(good + 1, bad) if index not in skipped]:
        middle = min(open_to, key=lambda index: (abs(2 * index - good - bad), index))
        found = ask(middle)
        if found.answer is Answer.GOOD:
            good = middle
        elif found.answer is Answer.BAD:
            bad = middle
        else:
            skipped[middle] = found.why
    between = tuple((releases[index], skipped[index]) for index in range(good + 1, bad))
    return Bisected(releases[good], releases[bad], between, tuple(judged))


def describe(found: Bisected) -> list[str]:
    """What was found, a sentence a line."""
    lines = [f"first bad: {found.first_bad}; last good: {found.last_good}"]
    lines += [f"between them {release} could not be judged: {why}" for release, why in found.skipped]
    if found.skipped:
        lines.append("so the change came with one of these, or with the first bad one")
    return lines
