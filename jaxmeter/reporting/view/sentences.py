"""The sentence that answers a question: a number with its interval, or why there is none, and what to doubt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxmeter.document import numbers
from jaxmeter.document.model import Tone
from jaxmeter.harness.metrics.derived import compare_paired, doubt_ratio, find_withheld
from jaxmeter.harness.metrics.metric import Direction, Reading
from jaxmeter.harness.metrics.plausibility import explain_same_program, is_same_program
from jaxmeter.harness.metrics.reading import Case, Variant
from jaxmeter.harness.metrics.statistics import Interval, differs
from jaxmeter.harness.metrics.table import METRICS, THROUGHPUT
from jaxmeter.harness.metrics.traced import DECLARED, find_cost
from jaxmeter.harness.metrics.write import write_reading
from jaxmeter.harness.record import INCOMPLETE, Answer
from jaxmeter.harness.record.peaks import MEASURED
from jaxmeter.harness.record.wording import counted, shorten

from ..compare.ratios import divide_readings
from .cells import find_speedup_tone
from .doubts import CONTENDED, describe_fault, find_doubts, is_vague, name_traps
from .figures.marks import TIME
from .names import LONGEST_TERM, name_in_sentence

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
