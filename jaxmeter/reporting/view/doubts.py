"""What a reader must know next to a number: doubts, why there is none, and how small a difference can be detected."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jaxmeter.document import numbers
from jaxmeter.harness.metrics.metric import Fault, Lack, Reading
from jaxmeter.harness.metrics.plausibility import TIMES, find_disagreement
from jaxmeter.harness.metrics.precision import describe_smallest, explain_scatter, list_smallest, suggest_more
from jaxmeter.harness.metrics.reading import Case, Variant
from jaxmeter.harness.metrics.statistics import Interval
from jaxmeter.harness.plan.probes import PROBES
from jaxmeter.harness.record import INCOMPLETE, MemoryDetails, Outcome, Status
from jaxmeter.harness.record.traps import describe_trap, find_traps, name_trap
from jaxmeter.harness.record.wording import counted, shorten

from .names import name_variant
from .runs import list_notes_of

CONTENDED = "contended"
"""What follows a number that is not to be trusted."""

AT_ODDS = "inconsistent"

WIDE = "wide"
"""What follows a number that says little."""

VAGUE = 2.0
"""An interval whose bounds are further apart than this factor is said to be wide."""

LONGEST_REASON = 160
"""In a sentence or a table of numbers; the section on what has no number gives every reason in full."""

MOST_NOTES = 10
"""More would bury what the section says."""


def find_doubts(variant: Variant, reading: Reading) -> tuple[str, ...]:
    """Return the words that follow a number: contended, inconsistent with the speedup, above the peak, traps."""
    words = [CONTENDED] if reading.contended else [reading.doubt] if reading.doubt else []
    if reading.metric.name in TIMES and find_disagreement(variant, reading.metric.name):
        words.append(AT_ODDS)
    return (*words, *name_traps(variant))


def name_traps(variant: Variant) -> tuple[str, ...]:
    """Return `trap: dead work` for each kind of trap that its suite does not declare."""
    return tuple(dict.fromkeys(f"trap: {name_trap(trap)}" for trap in find_traps(variant.outcomes)))


def explain_doubts(variant: Variant) -> tuple[str, ...]:
    """Return the sentences behind the words, and why a speedup scatters far more than others, each once."""
    traps = map(describe_trap, find_traps(variant.outcomes))
    times = (find_disagreement(variant, metric) for metric in TIMES)
    return tuple(dict.fromkeys(filter(None, (*traps, *times, explain_scatter(variant)))))


def is_vague(interval: Interval | None) -> bool:
    """Return whether the bounds are further apart than a factor of two."""
    if interval is None or interval.low is None or interval.high is None:
        return False
    return interval.high > VAGUE * max(interval.low, 0.0)


def describe_trust(cases: Sequence[Case]) -> str:
    """Return the smallest detectable differences of one run's speedups, and how many of its times are contended.

    The text also says how to detect smaller differences, and how many speedups scatter far more than the others.

    Args:
      cases: Of one machine.
    """
    variants = [variant for case in cases for variant in case.shown]
    smallest = list(list_smallest(variants))
    timed = [variant for variant in variants if variant.read("execution_s").interval is not None]
    if not timed:
        return "No time was measured."
    contended = sum(variant.read("execution_s").contended for variant in timed)
    noisy = (
        f"{contended} of {counted(len(timed), 'time')} {'is' if contended == 1 or len(timed) == 1 else 'are'} contended"
    )
    wild = sum(bool(explain_scatter(variant)) for variant in variants)
    scattered = (
        f"{counted(wild, 'speedup')} {'scatters' if wild == 1 else 'scatter'} far more than the others; the notes of "
        f"{'its variant' if wild == 1 else 'their variants'} explain why."
    )
    parts = (
        f"{describe_smallest(smallest).replace(' %', f'{numbers.SPACE}%') or 'No speedup has an interval'}; {noisy}.",
        suggest_more(smallest, timed[0].settings),
        scattered if wild else "",
    )
    return " ".join(filter(None, parts))


def describe_outcome(outcome: Outcome, *probes: str) -> str:
    """Return `timing failed: out of memory`."""
    # What does not fit is neither a failure nor a lack of support: the program is fine, for a larger device.
    shown = () if outcome.status is Status.TOO_LARGE else probes
    words = " ".join(word for word in (", ".join(shown), outcome.status.value) if word)
    return f"{words}: {shorten(outcome.reason, LONGEST_REASON)}" if outcome.reason else words


def describe_fault(fault: Fault) -> str:
    """Return `timing failed: out of memory`, `the run was not asked for timing`, `no compile_s recorded`."""
    if fault.outcome is not None:
        return describe_outcome(fault.outcome, *filter(None, (fault.probe,)))
    if fault.reason:
        return fault.reason
    if fault.lack is Lack.NOT_ASKED:
        return f"the run was made without {fault.probe}"
    return f"no record of its {fault.probe}" if fault.lack is Lack.NOT_LOOKED else f"no {fault.metric} recorded"


def list_notes_of_section(variants: Iterable[Variant], section: str) -> tuple[str, ...]:
    """Return what the probes of a section noted, each sentence once with its variants, the most frequent first."""
    probes = [probe.name for probe in PROBES.values() if probe.section == section]
    alike: dict[str, list[Variant]] = {}
    for variant in variants:
        for note in dict.fromkeys(note for probe in probes for note in list_notes_of(variant, probe)):
            alike.setdefault(note, []).append(variant)
    ordered = sorted(alike.items(), key=lambda item: -len(item[1]))
    lines = [
        f"{name_variant(who[0]) if len(who) == 1 else counted(len(who), 'variant')}: {note}" for note, who in ordered
    ]
    left = len(lines) - MOST_NOTES
    return (*lines[:MOST_NOTES], *([f"{counted(left, 'note')} more, in the record."] if left > 0 else []))


def count_statuses(variants: Iterable[Variant]) -> dict[Status, int]:
    """Return how many variants have each status, worst first; statuses without any are left out."""
    statuses = [variant.status for variant in variants]
    return {status: statuses.count(status) for status in reversed(Status) if status in statuses}


def find_incomplete(variants: Iterable[Variant]) -> tuple[Variant, ...]:
    """Return variants that failed, are wrong or missing; worst first."""
    order = list(Status)
    incomplete = [variant for variant in variants if variant.status in INCOMPLETE]
    return tuple(sorted(incomplete, key=lambda variant: -order.index(variant.status)))


def describe_unreached_target(variant: Variant) -> str:
    """Return `target ±2 % not reached: ±3.1 %`; of the speedup, or of the time itself for a lone variant."""
    timed = [other for other in variant.case.shown if other.read("execution_s").interval is not None]
    speedup, time = variant.read("speedup").interval, variant.read("execution_s").interval
    interval = speedup if speedup is not None else time if len(timed) == 1 else None
    if interval is None:
        return ""
    target = variant.settings.target_half_width
    reached = numbers.usable(interval.half_width)
    if reached is None:
        return f"no interval: {counted(interval.count, 'process', 'processes')}"
    if reached <= target:
        return ""
    # 2.03 % is beyond a target of 2 %, and has to read so.
    close = numbers.percent(reached) == numbers.percent(target)
    reached_text = f"±{numbers.percent(reached, digits=3 if close else 2)}"
    if reached > 1:
        reached_text = f"beyond ±{numbers.percent(1)}"
    return f"target ±{numbers.percent(target)} not reached: {reached_text}"


def list_unplanned(variant: Variant) -> tuple[str, ...]:
    """Return the kinds of operations whose working memory the plan leaves out; also empty if these are unknown."""
    details = variant.details(MemoryDetails)
    return () if details is None else details.unplanned or ()
