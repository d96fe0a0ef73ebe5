"""What all suites together answer: where memory goes, and where the time of captured steps goes."""

from __future__ import annotations

from collections.abc import Sequence

from jaxmeter.harness.metrics.reading import Case
from jaxmeter.harness.metrics.traced import find_trace

from .cases import label_case
from .files import TRACE, describe_folder, name_folder
from .keys import fragment_of
from .page_model import AnswerLine
from .sections.memory import PLANNED, describe_memory
from .sections.traces import QUESTION, describe_traces
from .tone import Tone

MEMORY_RANK, TRACES_RANK = 8.3, 8.6
"""Among those of the suites."""

NOT_CAPTURED = "No answer: no profile was captured; jaxmeter run --probe trace captures some."


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
    found = [(one, case) for case in cases if case.record is not None for one in case.record.artifacts]
    captured = [case for one, case in found if one.kind == TRACE]
    read = [case for case in cases if any(find_trace(variant) is not None for variant in case.shown)]
    if not captured and not read:
        return AnswerLine("traces", QUESTION, NOT_CAPTURED, "", Tone.MUTED)
    case = (read or captured)[0]
    opened = f"jaxmeter trace --open {name_folder(describe_folder(case.run))}"
    text = describe_traces(cases) if read else f"No answer: the captures were not read; {opened}"
    return AnswerLine("traces", QUESTION, text, label_case(case), target=fragment_of(case), rank=TRACES_RANK)
