"""What answers each suite's question, and those about all suites: with a number and its interval, or why there is none.

Nothing here knows a suite. Each declares its question, the variants that answer it and the metric. If a suite
declares none, its answer is the largest reliable speedup of the case that represents the suite.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from jaxmeter.document.model import Tone
from jaxmeter.harness.metrics.reading import Case, Variant
from jaxmeter.harness.metrics.table import METRICS, THROUGHPUT
from jaxmeter.harness.metrics.traced import find_bound_of, find_cost, find_trace
from jaxmeter.harness.metrics.write import write
from jaxmeter.harness.record import Answer
from jaxmeter.harness.record.wording import counted, shorten
from jaxmeter.harness.traces.bound import BoundKind

from .changes import write_numbers
from .comparisons import Comparisons
from .doubts import list_unplanned
from .figure_model import Figure, name_quantities
from .figures.marks import CALLED, PLANNED, TIME
from .names import LONGEST_NAME, fragment_of, name_in_sentence, name_variant
from .page_model import AnswerLine, Phrase
from .runs import TRACE, MachineRuns, describe_folder, find_hue, label_case, name_folder
from .sentences import SHARES, UNRELIABLE, name_metric, write_sentence

SPEEDUP = "speedup"

OF_SPEED = (TIME, SPEEDUP, THROUGHPUT, *SHARES, "achieved_flops", "achieved_bandwidth", "bus_bandwidth")
"""Metrics whose answer says how fast a case is."""

LARGEST_RETURN_SHARE = 0.5
"""Of the execution time. A call that returns later than that tells little of the device."""

LONGEST_SUITE = 60
LONGEST_QUESTION = 160

MEMORY_RANK, TRACES_RANK = 8.3, 8.6
"""Among those of the suites."""

SMALLEST_SHARE = 1e-3
"""Of a device's memory: below it, how much less says nothing to who plans memory."""


@dataclass(frozen=True)
class SuiteQuestion:
    """What a suite asks.

    Args:
      standing: The case that stands for the suite.
      cases: The case that answers the question, of each machine that has an answer.
    """

    suite: str
    standing: Case
    cases: tuple[Case, ...]


def gather_questions(machines: Sequence[MachineRuns], newest: Sequence[Case]) -> tuple[SuiteQuestion, ...]:
    """Return the question of each suite, in the order of the suites.

    Args:
      newest: On each machine, each case once.
    """
    of_machines = [[case for case in newest if machine.has(case.run)] for machine in machines]
    return tuple(
        SuiteQuestion(
            suite,
            standing,
            tuple(case for own in of_machines if (case := choose_answering(standing, own)) is not None),
        )
        for suite, standing in choose_standing(newest).items()
    )


def choose_standing(cases: Sequence[Case]) -> dict[str, Case]:
    """Return by suite the case that stands for it.

    It is a case that answers the suite's question, of those the case that ran on the most machines, in the newest run.

    Args:
      cases: On each machine, each case once.
    """
    chosen = {}
    for suite in dict.fromkeys(case.planned.suite for case in cases):
        own = [case for case in cases if case.planned.suite == suite]
        answering = [case for case in own if case.planned.answer is not None]
        standing = answering or [case for case in own if case.planned.represents_workload] or own
        machines = Counter(case.planned.name for case in standing)
        chosen[suite] = max(standing, key=lambda case: (machines[case.planned.name], case.run.manifest.started))
    return chosen


def choose_answering(standing: Case, own: Sequence[Case]) -> Case | None:
    """Return the case that answers a suite's question on a machine: the same as elsewhere, if it was run there.

    Where that was not run, or its calls take long to return, the case with the largest cost that answers the same
    question is better. None where no case answers it.

    Args:
      standing: The case that stands for the suite.
      own: The machine's cases, each once.
    """
    same = next((case for case in own if fragment_of(case) == fragment_of(standing)), None)
    if same is not None and not _is_late(same):
        return same
    asked = _name_question(standing)
    alike = [case for case in own if asked is not None and _name_question(case) == asked]
    larger = (case for case in alike if same is None or find_cost_of(case) > find_cost_of(same))
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
    timed = [variant for variant in case.shown if variant.read(TIME).interval is not None]
    for what in ("flops", "bytes"):
        known = [cost[0] for variant in timed if (cost := find_cost(variant, what)) is not None]
        if known:
            return max(known)
    return 0.0


def make_answers(questions: Sequence[SuiteQuestion], comparisons: Comparisons) -> dict[str, AnswerLine]:
    """Return the answer of each suite, of the case that stands for it, with what changed of it."""
    return {question.suite: _make_answer(question.standing, comparisons) for question in questions}


def make_overall_answers(newest: Sequence[Case]) -> tuple[AnswerLine, ...]:
    """Return the answers about the memory and the captures of all suites; those that have nothing to say rank last.

    Args:
      newest: On each machine, each case once.
    """
    return (_answer_memory(newest), _answer_traces(newest)) if newest else ()


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
    times = [
        change for change in comparisons.of(case) if change.variant == variant.planned.name and change.metric == TIME
    ]
    which = f"of {name_in_sentence(variant)}"
    return "".join(f"; {change.verdict.value}: {write_numbers(change, which)}" for change in times[:1])


def find_headline(case: Case, answer: Answer | None) -> Variant | None:
    """Return the variant that leads a case: that of its suite's answer, else the one that is surely the fastest."""
    answer = answer or _find_surest(case)
    return None if answer is None else case.find(answer.variant)


def _find_surest(case: Case) -> Answer | None:
    """Return the jit variant, else the variant, that is surely the fastest, against the baseline; None if untimed."""
    timed = [variant for variant in case.shown if variant.read(TIME).interval is not None]
    jitted = [variant for variant in timed if variant.planned.mode == "jit"]
    best = max(jitted or timed, key=_sure_speedup, default=None)
    if best is None:
        return None
    return Answer("", best.planned.name, against=None if best.is_baseline else case.planned.baseline)


def _sure_speedup(variant: Variant) -> tuple[float, float]:
    """Return the lower bound over the baseline variant, then the shorter time, for those without a sure speedup."""
    speedup = variant.read(SPEEDUP)
    low = (
        1.0 if variant.is_baseline else None if speedup.interval is None or speedup.contended else speedup.interval.low
    )
    return low or 0.0, -(variant.read(TIME).estimate or 0.0)


def _answer_memory(newest: Sequence[Case]) -> AnswerLine:
    """Return the largest plan of all, and how many variants do not fit."""
    question = "What is the largest plan, and does everything fit?"
    variants = [variant for case in newest for variant in case.shown]
    plans = {variant: plan for variant in variants if (plan := variant.read(PLANNED).estimate) is not None}
    if not plans:
        return AnswerLine("memory", question, "No answer: no memory analysis was recorded.", "", Tone.MUTED)
    largest = max(plans, key=plans.__getitem__)
    share, called = largest.read("capacity_share"), largest.read(CALLED)
    beyond = sum((variant.read(share.metric.name).estimate or 0.0) > 1 for variant in variants)
    parts = (
        f"{counted(beyond, 'variant')} {'does' if beyond == 1 else 'do'} not fit. " if beyond else "",
        f"Largest plan: {write(METRICS[PLANNED], plans[largest])}",
        f", {write(share.metric, share.estimate)} of the device" if (share.estimate or 0.0) >= SMALLEST_SHARE else "",
        f" (measured {write(called.metric, called.estimate)}, as the plan leaves out the working memory of products)"
        if called.estimate is not None and list_unplanned(largest)
        else "",
        f", {name_variant(largest)}.",
    )
    return AnswerLine("memory", question, "".join(parts), "", target=fragment_of(largest.case), rank=MEMORY_RANK)


def _answer_traces(newest: Sequence[Case]) -> AnswerLine:
    """Return what bounds the steps that were captured."""
    question = "Where does the time go?"
    kept = [(file, case) for case in newest if case.record is not None for file in case.record.artifacts]
    captured = [case for file, case in kept if file.kind == TRACE]
    read = [variant for case in newest for variant in case.shown if find_trace(variant) is not None]
    if not captured and not read:
        text = "No answer: no profile was captured; jaxmeter run --probe trace captures some."
        return AnswerLine("traces", question, text, "", Tone.MUTED)
    case = read[0].case if read else captured[0]
    opened = f"jaxmeter trace --open {name_folder(describe_folder(case.run))}"
    text = _count_bounds(read) if read else f"No answer: the captures were not read; {opened}"
    return AnswerLine("traces", question, text, label_case(case), target=fragment_of(case), rank=TRACES_RANK)


def _count_bounds(traced: Sequence[Variant]) -> str:
    bounds = list(map(find_bound_of, traced))
    kinds = Counter(bound.kind for bound in bounds if bound is not None)
    undecided = kinds.pop(BoundKind.NOTHING, 0)
    unknown = sum(bound is None for bound in bounds)
    parts = [f"{count} bound by {kind.value}" for kind, count in kinds.most_common()]
    parts += [f"{undecided} without a dominant part"] if undecided else []
    parts += [f"{unknown} with an unknown bound"] if unknown else []
    return f"Of {counted(len(bounds), 'captured step')}: {', '.join(parts)}."
