"""What answers each suite's question: a sentence with a number and its interval, or why there is none.

Nothing here knows a suite. Each declares its question, the variants that answer it and the metric. If a suite
declares none, its answer is the largest reliable speedup of the case that represents the suite.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from jaxmeter.harness.metrics.reading import Case, Variant
from jaxmeter.harness.metrics.roofline import find_cost
from jaxmeter.harness.metrics.table import METRICS, THROUGHPUT
from jaxmeter.harness.record import Answer

from ..text import shorten
from .changes import write_numbers
from .comparisons import Comparisons
from .figure_model import Figure, name_quantities
from .figures.marks import find_hue
from .keys import fragment_of
from .names import LONGEST_NAME, name_in_sentence
from .overview_model import Phrase
from .page_model import AnswerLine
from .sentences import SHARES, TIME, UNRELIABLE, name_metric, write_sentence

SPEEDUP = "speedup"

OF_SPEED = (TIME, SPEEDUP, THROUGHPUT, *SHARES, "achieved_flops", "achieved_bandwidth", "bus_bandwidth")
"""Metrics whose answer says how fast a case is."""

LARGEST_RETURN_SHARE = 0.5
"""Of the execution time. A call that returns later than that tells little of the device."""

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


def choose_answering(standing: Case, own: Sequence[Case]) -> Case | None:
    """Return the case that answers a suite's question on a machine: the same as elsewhere, if it was run there.

    Where that was not run, or its calls take long to return, the case with the largest cost that answers the same
    question is the better one. None where no case answers it.

    Args:
      standing: The case that stands for the suite.
      own: The machine's cases, each once.
    """
    same = next((one for one in own if fragment_of(one) == fragment_of(standing)), None)
    if same is not None and not _is_late(same):
        return same
    asked = _name_question(standing)
    alike = [one for one in own if asked is not None and _name_question(one) == asked]
    larger = (one for one in alike if same is None or find_cost_of(one) > find_cost_of(same))
    return max(larger, key=find_cost_of, default=same)


def _name_question(case: Case) -> tuple[str, str, str, tuple[str, ...]] | None:
    """Return what answers a question: another version of a suite may ask the same in other words."""
    planned, answer = case.planned, case.planned.answer
    return None if answer is None else (planned.suite, planned.workload, answer.metric, answer.variants)


def _is_late(case: Case) -> bool:
    """Return whether the variant that leads takes over half its time until its call returns."""
    best = find_headline(case, case.planned.answer)
    if best is None:
        return False
    time, until = best.read(TIME).estimate, best.read("return_s").estimate
    return time is not None and until is not None and until > LARGEST_RETURN_SHARE * time


def find_cost_of(case: Case) -> float:
    """Return the operations, else the bytes, of the costliest variant that was timed; 0 where nobody knows."""
    timed = [one for one in case.shown if one.read(TIME).interval is not None]
    for what in ("flops", "bytes"):
        known = [cost[0] for one in timed if (cost := find_cost(one, what)) is not None]
        if known:
            return max(known)
    return 0.0


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


def write_answer(case: Case, figure: Figure | None) -> Phrase:
    """Return the sentence that answers a suite's question and the doubts about it, without remarks.

    Args:
      figure: What stands above the sentence; unless it shows the metric, the sentence names it.
    """
    return _write_phrase(case, choose_answer(case), figure)


def write_speed(case: Case, figure: Figure | None) -> Phrase:
    """Return the sentence that answers a suite's question if it is about speed, else the surest speedup."""
    answer = choose_answer(case)
    is_of_speed = answer is not None and answer.metric in OF_SPEED
    return _write_phrase(case, answer if is_of_speed else _find_surest(case), figure)


def _write_phrase(case: Case, answer: Answer | None, figure: Figure | None) -> Phrase:
    sentence = write_sentence(case, answer)
    text, metric = sentence.text, "" if answer is None else answer.metric
    if metric in METRICS and any(METRICS[metric].title in title for title in name_quantities(figure)):
        text = text.removeprefix(name_metric(metric))
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
    return "".join(f"; {one.verdict.value}: {write_numbers(one, which)}" for one in times[:1])


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
