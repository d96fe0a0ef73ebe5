"""What all suites together answer: where memory goes, and what was captured to look into."""

from __future__ import annotations

from collections.abc import Sequence

from jaxmeter.harness.metrics.reading import Case

from .. import numbers
from ..text import counted
from .cases import label_case
from .files import TRACE, describe_folder, name_folder
from .keys import fragment_of, key_of_case
from .page_model import AnswerLine, Tone
from .sections.memory import PLANNED, describe_memory

MEMORY_RANK, TRACES_RANK = 5.0, 6.5
"""Among those of the suites."""

NOT_CAPTURED = "No answer: no profile was captured; nox -s cpu -- --probe trace captures some."


def make_overall_answers(cases: Sequence[Case]) -> tuple[AnswerLine, ...]:
    """Of memory, then of traces; what has nothing to tell ranks last.

    Args:
      cases: On each machine, each case once.
    """
    return (_answer_memory(cases), _answer_traces(cases)) if cases else ()


def _answer_memory(cases: Sequence[Case]) -> AnswerLine:
    question = "What is the largest plan, and does everything fit?"
    plans = [(variant.read(PLANNED).estimate, case) for case in cases for variant in case.shown]
    known = [(plan, case) for plan, case in plans if plan is not None]
    if not known:
        return AnswerLine("memory", question, "No answer: no memory analysis was recorded.", "", Tone.MUTED)
    _, largest = max(known, key=lambda one: one[0])
    return AnswerLine("memory", question, describe_memory(cases), "", target=fragment_of(largest), rank=MEMORY_RANK)


def _answer_traces(cases: Sequence[Case]) -> AnswerLine:
    question = "Which profiles were captured, and what opens them?"
    found = [(one, case) for case in cases if case.record is not None for one in case.record.artifacts]
    captured = [(one, case) for one, case in found if one.kind == TRACE]
    if not captured:
        return AnswerLine("traces", question, NOT_CAPTURED, "", Tone.MUTED)
    count = len({(key_of_case(case), one.variant) for one, case in captured})
    where = len({key_of_case(case) for _, case in captured})
    size = numbers.memory(float(sum(one.size_bytes for one, _ in captured)))
    case = captured[0][1]
    text = (
        f"{counted(count, 'variant')} of {counted(where, 'case')}, {size}: "
        f"nox -s traces -- {name_folder(describe_folder(case.run))}"
    )
    return AnswerLine("traces", question, text, label_case(case), target=fragment_of(case), rank=TRACES_RANK)
