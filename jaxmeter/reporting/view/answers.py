"""What answers each suite's question: a sentence with a number and its interval, or why there is none.

Nothing here knows a suite. Each declares its question, the variants that answer it and the metric. If a suite
declares none, its answer is the largest reliable speedup of the case that represents the suite.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from jaxmeter.harness.metrics.reading import Case, Variant
from jaxmeter.harness.metrics.table import THROUGHPUT
from jaxmeter.harness.record import Answer

from ..text import shorten
from .changes import write_numbers
from .comparisons import Comparisons
from .figures.marks import find_hue
from .keys import fragment_of
from .names import LONGEST_NAME, name_in_sentence
from .overview_model import Phrase
from .page_model import AnswerLine
from .sentences import SHARES, TIME, UNRELIABLE, name_metric, write_sentence

SPEEDUP = "speedup"

OF_SPEED = (TIME, SPEEDUP, THROUGHPUT, *SHARES, "achieved_flops", "achieved_bandwidth", "bus_bandwidth")
"""Metrics whose answer says how fast a case is."""

LONGEST_SUITE = 60
LONGEST_QUESTION = 160


def choose_standing(cases: Sequence[Case]) -> dict[str, Case]:
    """By suite, the case that stands for it: one that answers its question, on the most machines, in the newest run.

    Args:
      cases: On each machine, each case once.
    """
    found = {}
    for suite in dict.fromkeys(case.planned.suite for case in cases):
        own = [case for case in cases if case.planned.suite == suite]
        answering = [case for case in own if case.planned.answer is not None]
        standing = answering or [case for case in own if case.planned.represents_workload] or own
        machines = Counter(case.planned.name for case in standing)
        found[suite] = max(standing, key=lambda case: (machines[case.planned.name], case.run.manifest.started))
    return found


def make_answers(standing: Mapping[str, Case], comparisons: Comparisons) -> dict[str, AnswerLine]:
    """An answer by suite, of the case that stands for it, with what changed of it."""
    return {suite: _make_answer(case, comparisons) for suite, case in standing.items()}


def rank_answer(case: Case) -> float:
    """Return the rank of a suite's answer; the lowest come first."""
    rank = None if case.planned.answer is None else case.planned.answer.rank
    return float("inf") if rank is None else rank


def _make_answer(case: Case, comparisons: Comparisons) -> AnswerLine:
    declared = case.planned.answer
    sentence = write_sentence(case, choose_answer(case))
    planned = case.planned
    question = (planned.question or planned.description) if declared is None else declared.question
    return AnswerLine(
        suite=shorten(planned.suite, LONGEST_SUITE),
        question=shorten(question, LONGEST_QUESTION),
        text=str(sentence),
        of=f"{shorten(planned.name, LONGEST_NAME)} · {case.run.label}{_describe_change(case, comparisons)}",
        tone=sentence.tone,
        target=fragment_of(case),
        rank=rank_answer(case),
    )


def choose_answer(case: Case) -> Answer | None:
    """Return what a case answers: what its suite declares, else the variant that is surely the fastest."""
    return case.planned.answer or _find_surest(case)


def write_answer(case: Case) -> Phrase:
    """Return the sentence that answers a suite's question and the doubts about it, without remarks."""
    return _write_phrase(case, choose_answer(case))


def write_speed(case: Case) -> Phrase:
    """Return the sentence that answers a suite's question if it is about speed, else the surest speedup."""
    answer = choose_answer(case)
    return _write_phrase(case, answer if answer is not None and answer.metric in OF_SPEED else _find_surest(case))


def _write_phrase(case: Case, answer: Answer | None) -> Phrase:
    sentence = write_sentence(case, answer)
    metric = "" if answer is None else answer.metric
    text = sentence.text.removeprefix(name_metric(metric))  # the figure's axis has it
    doubt = "; ".join(sentence.doubts)
    if doubt.startswith(UNRELIABLE):  # else it begins with the name of a variant
        doubt = f"{doubt[:1].upper()}{doubt[1:]}"
    return Phrase(f"{text}.", find_hue(case.run), sentence.tone, f"{doubt}." if doubt else "")


def _describe_change(case: Case, comparisons: Comparisons) -> str:
    """`; suspected slower: time of change_point:jit 92 ms → 140 ms, +52 %`; empty where it was not compared."""
    variant = find_headline(case, case.planned.answer)
    if variant is None:
        return ""
    times = [one for one in comparisons.of(case) if one.variant == variant.planned.name and one.metric == TIME]
    which = f"of {name_in_sentence(variant)}"
    return "".join(f"; {one.finding.value}: {write_numbers(one, which)}" for one in times[:1])


def find_headline(case: Case, answer: Answer | None) -> Variant | None:
    """The variant that leads a case: that of its suite's answer, else the one that is surely the fastest."""
    answer = answer or _find_surest(case)
    return None if answer is None else case.find(answer.variant)


def _find_surest(case: Case) -> Answer | None:
    """The jit variant, else the variant, that is surely the fastest, against the baseline; None where none is timed."""
    timed = [variant for variant in case.shown if variant.read(TIME).interval is not None]
    jitted = [variant for variant in timed if variant.planned.mode == "jit"]
    best = max(jitted or timed, key=_sure_speedup, default=None)
    if best is None:
        return None
    return Answer("", best.planned.name, against=None if best.is_baseline else case.planned.baseline)


def _sure_speedup(variant: Variant) -> tuple[float, float]:
    """The lower bound over the baseline variant; without one that can be trusted, the shorter time is the better."""
    speedup = variant.read(SPEEDUP)
    low = (
        1.0 if variant.is_baseline else None if speedup.interval is None or speedup.contended else speedup.interval.low
    )
    return low or 0.0, -(variant.read(TIME).estimate or 0.0)
