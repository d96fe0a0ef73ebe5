"""Which of the planned cases a run measures, and in which order."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import msgspec

from jaxmeter.harness.record import PlannedCase
from jaxmeter.harness.record.patterns import find_nearest, match_cases, names_of


class SelectionError(Exception):
    """Nothing matches what was selected; the message names the nearest match."""


def select(cases: Sequence[PlannedCase], patterns: Sequence[str]) -> tuple[PlannedCase, ...]:
    """Cases whose suite, workload or whole name matches any pattern; all without patterns.

    Raises:
      SelectionError: A pattern that matches nothing.
    """
    wanted: set[str] = set()
    for pattern in patterns:
        matching = match_cases(cases, pattern)
        if not matching:
            raise SelectionError(_no_match(pattern, cases))
        wanted |= {case.id for case in matching}
    return tuple(case for case in cases if not patterns or case.id in wanted)


def _no_match(pattern: str, cases: Iterable[PlannedCase]) -> str:
    nearest = find_nearest(pattern, (name for case in cases for name in names_of(case)))
    hint = "" if nearest is None else f"; nearest: '{nearest}'"
    return f"no case of this level matches --select '{pattern}'{hint}; list all: jaxmeter list --full"


def choose_representatives(cases: Sequence[PlannedCase]) -> tuple[PlannedCase, ...]:
    """The same cases; where the one that represents its workload was not chosen, the first of the chosen does.

    The answer of a suite stays with one case: where its `at` has that, else with the one that represents its workload.
    """
    of_workload: dict[str, str] = {}
    for case in sorted(cases, key=lambda case: not case.represents_workload):
        of_workload.setdefault(case.workload, case.id)
    with_answer: dict[tuple[str, str], str] = {}
    for case in sorted(cases, key=lambda case: (not _is_answer(case), of_workload[case.workload] != case.id)):
        if case.answer is not None:
            with_answer.setdefault((case.suite, case.platform), case.id)
    return tuple(
        msgspec.structs.replace(
            case,
            answer=case.answer if with_answer.get((case.suite, case.platform)) == case.id else None,
            represents_workload=of_workload[case.workload] == case.id,
        )
        for case in cases
    )


def _is_answer(case: PlannedCase) -> bool:
    """Whether it is the case that its suite's answer asks for."""
    return case.answer is not None and all(case.params[name] == value for name, value in case.answer.at.items())


def shuffle(cases: Sequence[PlannedCase], seed: int) -> tuple[PlannedCase, ...]:
    """A random order, so that a machine's slow minute does not always fall on the same sizes."""
    order = list(cases)
    random.Random(seed).shuffle(order)
    return tuple(order)
