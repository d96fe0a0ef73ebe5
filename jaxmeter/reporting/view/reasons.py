"""Why something has no number, or one that is not to be relied on: statuses, notes and unreached targets in words."""

from __future__ import annotations

from collections.abc import Iterable

from jaxmeter.harness.metrics.metric import Fault, Lack
from jaxmeter.harness.metrics.reading import Variant
from jaxmeter.harness.plan.probes import PROBES
from jaxmeter.harness.record import INCOMPLETE, Outcome, Status

from .. import numbers
from ..text import counted, shorten
from .cases import list_notes_of
from .names import name_variant

LONGEST_REASON = 160
"""In a sentence or a table of numbers; the section on what has no number gives every reason in full."""

MOST_NOTES = 10
"""More would bury what the section says."""


def describe_outcome(outcome: Outcome, *probes: str) -> str:
    """`timing failed: out of memory`."""
    # What does not fit is neither a failure nor a lack of support: the program is fine, for a larger device.
    shown = () if outcome.status is Status.TOO_LARGE else probes
    words = " ".join(word for word in (", ".join(shown), outcome.status.value) if word)
    return f"{words}: {shorten(outcome.reason, LONGEST_REASON)}" if outcome.reason else words


def describe_fault(fault: Fault) -> str:
    """`timing failed: out of memory`, `the run was not asked for timing`, `no compile_s recorded`."""
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
    """How many variants have each status, worst first; statuses without any are left out."""
    statuses = [variant.status for variant in variants]
    return {status: statuses.count(status) for status in reversed(Status) if status in statuses}


def find_incomplete(variants: Iterable[Variant]) -> tuple[Variant, ...]:
    """Variants that failed, are wrong or missing; worst first."""
    order = list(Status)
    found = [variant for variant in variants if variant.status in INCOMPLETE]
    return tuple(sorted(found, key=lambda variant: -order.index(variant.status)))


def describe_unreached_target(variant: Variant) -> str:
    """`target ±2 % not reached: ±3.1 %`, or empty: of the speedup, or of the time itself for a lone variant."""
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
