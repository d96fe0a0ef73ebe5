"""What answers each question: a number with its interval, or why there is none, and what to doubt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from jaxmeter.document import numbers
from jaxmeter.document.model import Tone
from jaxmeter.harness.metrics.derived import (
    DECLARED,
    compare_paired,
    doubt_ratio,
    find_bound_of,
    find_cost,
    find_trace,
    find_withheld,
)
from jaxmeter.harness.metrics.metric import Direction, Reading
from jaxmeter.harness.metrics.plausibility import explain_same_program, is_same_program
from jaxmeter.harness.metrics.reading import Case, Variant
from jaxmeter.harness.metrics.statistics import Interval, differs
from jaxmeter.harness.metrics.table import METRICS, THROUGHPUT
from jaxmeter.harness.metrics.write import write, write_reading
from jaxmeter.harness.record import INCOMPLETE, Answer
from jaxmeter.harness.record.environment import MEASURED
from jaxmeter.harness.record.wording import counted, shorten
from jaxmeter.harness.traces.bound import BoundKind

from ..compare.ratios import divide_readings
from .cells import CONTENDED, describe_fault, find_doubts, find_speedup_tone, is_vague, list_unplanned, name_traps
from .changes import write_numbers
from .comparisons import Comparisons
from .figures.points import CALLED, PLANNED, TIME
from .page_model import AnswerLine, Figure, Phrase, name_quantities
from .runs import (
    LONGEST_NAME,
    LONGEST_TERM,
    TRACE,
    MachineRuns,
    describe_folder,
    find_hue,
    fragment_of,
    label_case,
    name_folder,
    name_in_sentence,
    name_variant,
)

SHARES = {"flops_share": "flops", "bandwidth_share": "bytes"}
"""Of a peak, and what of a cost each is of."""

SENTENCES = {
    "flops_share": "reaches {} of the {}peak",
    "bandwidth_share": "reaches {} of the {}peak bandwidth",
    THROUGHPUT: "processes {}",
}
"""What a variant does by a metric whose value is an answer by itself."""

LEAST_FACTOR = 1.5
"""Below it, the two numbers by themselves say more."""

UNRELIABLE = "do not rely on it"


@dataclass(frozen=True)
class Sentence:
    """The answer to a question.

    Args:
      text: A number with its interval, or why there is none; without its full stop.
      doubts: Why not to rely on it.
      remarks: What else is known of the numbers.
    """

    text: str
    tone: Tone
    doubts: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the whole text."""
        return f"{'; '.join((self.text, *self.doubts, *self.remarks))}."


def is_known(metric: str) -> bool:
    """Return whether variants have a metric of this name; another version of jaxmeter may have recorded others."""
    return metric in METRICS and METRICS[metric].exponent_of is None


def write_sentence(case: Case, answer: Answer | None) -> Sentence:
    """Return what answers a question by one case; without an answer, why nothing was timed."""
    if answer is None:
        return _no_answer(_why_untimed(case))
    if not is_known(answer.metric):
        return _no_answer(f"this version of jaxmeter knows no metric {shorten(answer.metric, LONGEST_TERM)}")
    named = [(name, case.find(name)) for name in answer.variants]
    sides = [variant for _, variant in named if variant is not None]
    if len(sides) < len(named):
        lacking = next(name for name, variant in named if variant is None)
        return _no_answer(f"the case has no variant {shorten(lacking, LONGEST_TERM)}")
    readings = [side.read(answer.metric) for side in sides]
    if len(sides) == 2 and answer.metric == TIME:
        return _compare_times(sides[0], sides[1])
    if len(sides) == 2 and answer.metric == THROUGHPUT and all(reading.has_number for reading in readings):
        rates = " against ".join(write_reading(reading)[0] for reading in readings)
        return _compare_times(sides[0], sides[1], also=rates)
    return _list_values(sides, readings)


def _no_answer(reason: str) -> Sentence:
    return Sentence(f"No answer: {reason}", Tone.MUTED)


def _why_untimed(case: Case) -> str:
    if case.is_lost:
        return case.why_lost
    failed = [variant for variant in case.shown if variant.status in INCOMPLETE]
    lacking = (failed or list(case.shown))[:1]
    fault = lacking[0].read(TIME).fault if lacking else None
    return "no variant was planned" if not lacking else "no time recorded" if fault is None else describe_fault(fault)


def _compare_times(variant: Variant, other: Variant, also: str = "") -> Sentence:
    """Return how fast a variant is: `change_point:jit is 8.7× [8.5, 8.9] as fast as change_point:eager`.

    Args:
      also: A further remark on both variants.
    """
    ratio = compare_paired(variant, other)
    if ratio is None:
        faults = (side.read(TIME).fault for side in (variant, other))
        fault = next((fault for fault in faults if fault is not None), None) or find_withheld(variant, other)
        return _no_answer("no process timed both" if fault is None else describe_fault(fault))
    number = " ".join(part for part in numbers.speedup_with_bounds(ratio) if part != numbers.MISSING)
    names = list(map(name_in_sentence, (variant, other)))
    bounded = ratio.low is not None
    undecided = bounded and not differs(ratio)
    sentence = f"{names[0]} is {number} as fast as {names[1]}"
    if is_same := undecided and is_same_program(variant, other):
        sentence = f"{names[0]} is the same program as {names[1]}: measured {number} as fast"
    doubts = _write_doubts((doubt_ratio(variant, other),), (variant, other))
    remarks = (
        also,
        explain_same_program(variant, other) if is_same else "",
        "" if bounded else f"no interval from {counted(ratio.count, 'process', 'processes')}",
        "a wide interval" if is_vague(ratio) else "",
    )
    return Sentence(
        f"No difference is confirmed{_explain_undecided(variant, ratio)}: {sentence}"
        if undecided and not is_same
        else sentence,
        Tone.WARN if doubts else find_speedup_tone(ratio),
        doubts,
        tuple(filter(None, remarks)),
    )


def _write_doubts(doubts: Sequence[str], sides: Sequence[Variant]) -> tuple[str, ...]:
    """Return `do not rely on it: contended`, and `f:jit has a trap: dead work` of each side that has some."""
    known = tuple(filter(None, doubts))
    words = (f"{UNRELIABLE}: {' and '.join(known)}",) if known else ()
    return (*words, *_list_traps(sides))


def _list_traps(sides: Sequence[Variant]) -> tuple[str, ...]:
    """`f:jit has a trap: dead work`, of each side that has some."""
    return tuple(f"{name_in_sentence(side)} has a {trap}" for side in sides for trap in name_traps(side))


def _explain_undecided(variant: Variant, ratio: Interval) -> str:
    """Return why an interval that excludes 1 confirms no difference: verdicts take a wider one."""
    if ratio.low is None or ratio.high is None or ratio.low <= 1 <= ratio.high:
        return ""
    return f" at {numbers.percent(variant.case.run.verdict_level)}"


def _list_values(sides: Sequence[Variant], readings: Sequence[Reading]) -> Sentence:
    """Return another metric of each: `Temporary memory: blocks:jit 1 MiB, naive:jit 9 MiB, a factor of 9`."""
    lacking = next((reading for reading in readings if reading.interval is None), None)
    if lacking is not None:
        return _no_answer("nothing recorded" if lacking.fault is None else describe_fault(lacking.fault))
    doubts = _write_doubts(
        tuple(dict.fromkeys(each.doubt or CONTENDED for each in readings if each.contended or each.doubt)), sides
    )
    remarks = (
        "a wide interval" if any(is_vague(reading.interval) for reading in readings) else "",
        *_describe_peak(sides, readings[0]),
    )
    return Sentence(
        f"{_name_values(sides, readings)}{_write_factor(readings)}{_name_best(sides, readings)}",
        Tone.WARN if doubts else _find_tone(sides[0], readings),
        doubts,
        tuple(filter(None, remarks)),
    )


def _name_values(sides: Sequence[Variant], readings: Sequence[Reading]) -> str:
    """`step:jit reaches 43 % [41, 45] of the peak FLOP/s`; of two, or another metric, its title and each value."""
    metric, names = readings[0].metric, list(map(name_in_sentence, sides))
    values = [_write(reading) for reading in readings]
    if len(sides) == 1 and metric.name in SENTENCES:
        return f"{names[0]} {SENTENCES[metric.name].format(values[0], _name_peak(sides[0]))}"
    listed = ", ".join(f"{name} {value}" for value, name in zip(values, names, strict=True))
    return f"{name_metric(metric.name)}{listed}"


def _name_peak(variant: Variant) -> str:
    """Return `measured ` of a peak that was measured, which a time may exceed by chance."""
    return f"{MEASURED.partition(' ')[0]} " if (variant.environment.peaks_source or "").startswith(MEASURED) else ""


def name_metric(metric: str) -> str:
    """Return `Trace + lower + compile: `."""
    title = METRICS[metric].title if metric in METRICS else ""
    return f"{title[:1].upper()}{title[1:]}: " if title else ""


def _describe_peak(sides: Sequence[Variant], reading: Reading) -> tuple[str, ...]:
    """Of a share of a peak: whose peak it is, what was counted, and of one alone the throughput that it stands for."""
    variant, what = sides[0], SHARES.get(reading.metric.name)
    if what is None:
        return ()
    source, cost = variant.environment.peaks_source or "", find_cost(variant, what)
    origin = MEASURED if source.startswith(MEASURED) else f"from {shorten(source, LONGEST_TERM)}"
    is_named = source.startswith(MEASURED) and len(sides) == 1  # the sentence says so
    throughput = variant.read(THROUGHPUT)
    return (
        f"the peak is {origin}" if source and not is_named else "",
        f"{what} {cost[1]}" if cost is not None and cost[1] != DECLARED else "",
        _write(throughput) if throughput.has_number and len(sides) == 1 else "",
    )


def _find_tone(first: Variant, readings: Sequence[Reading]) -> Tone:
    """Of two values, good where the first is surely the better; of one, plain."""
    direction = readings[0].metric.direction
    if len(readings) != 2 or direction is Direction.NEITHER:
        return Tone.PLAIN
    above, below = readings if direction is Direction.HIGHER else reversed(readings)
    ratio = divide_readings(above, below, first.settings)
    tone = Tone.PLAIN if ratio is None else find_speedup_tone(ratio)
    return Tone.PLAIN if tone is Tone.MUTED else tone


def _write_factor(readings: Sequence[Reading]) -> str:
    """Return `, a factor of 130` of two values; empty where they are near.

    Nothing is said of two whose intervals overlap but that.
    """
    known = [each.estimate for each in readings if each.estimate is not None and each.estimate > 0]
    if len(readings) != 2 or len(known) != 2 or max(known) < LEAST_FACTOR * min(known):
        return ""
    first, second = (reading.interval for reading in readings)
    if first is not None and second is not None and not _are_apart(first, second):
        return "; the intervals overlap"
    return f", a factor of {numbers.roughly(max(known) / min(known))}"


def _name_best(sides: Sequence[Variant], readings: Sequence[Reading]) -> str:
    """Return `; least: cudnn:jit 512 B` where a right variant that the answer does not name is far better than both."""
    direction = readings[0].metric.direction
    if len(sides) != 2 or direction is Direction.NEITHER:
        return ""
    is_more = direction is Direction.HIGHER
    named = {side.name for side in sides}
    others = (each for each in sides[0].case.shown if each.name not in named and not each.is_peer)
    known = [
        (interval.estimate, other, reading)
        for other in others
        if (interval := (reading := other.read(readings[0].metric.name)).interval) is not None
        and other.status not in INCOMPLETE
        and not find_doubts(other, reading)
    ]
    if not known:
        return ""
    _, best, reading = (max if is_more else min)(known, key=lambda entry: entry[0])
    if not all(_is_far_better(reading.interval, side.interval, is_more=is_more) for side in readings):
        return ""
    return f"; {'most' if is_more else 'least'}: {name_in_sentence(best)} {_write(reading)}"


def _is_far_better(best: Interval | None, other: Interval | None, *, is_more: bool) -> bool:
    if best is None or other is None:
        return False
    least, most = (other.estimate, best.estimate) if is_more else (best.estimate, other.estimate)
    return least < most and most >= LEAST_FACTOR * least and _are_apart(best, other)


def _are_apart(interval: Interval, other: Interval) -> bool:
    """Return whether two intervals do not overlap; an interval without bounds is its estimate."""
    (low, high), (other_low, other_high) = (
        (each.estimate, each.estimate) if each.low is None or each.high is None else (each.low, each.high)
        for each in (interval, other)
    )
    return high < other_low or other_high < low


def _write(reading: Reading) -> str:
    """`49 ms [45, 53]`, `49 ms (45 to 53)`."""
    number, bounds = write_reading(reading)
    if bounds in ("", numbers.MISSING):
        return number
    return f"{number} {bounds}" if bounds.startswith("[") else f"{number} ({bounds})"


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
