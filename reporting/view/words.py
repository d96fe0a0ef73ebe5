"""Sentences and cells that several sections share."""

from __future__ import annotations

import statistics as summaries
from collections.abc import Iterable, Sequence

from harness.record import INCOMPLETE, Outcome, Status
from harness.statistics import Interval, differs

from .. import numbers
from ..text import one_of, shorten
from .measured import Case, Place, Variant
from .parts import Cell, Tone

LONGEST_NAME = 80
LONGEST_REASON = 160
"""In a sentence or a table of numbers; the section on what has no number gives every reason in full."""

_TONES = {Status.OK: Tone.PLAIN, Status.SKIPPED: Tone.MUTED, Status.UNSUPPORTED: Tone.MUTED}


def tone_of(status: Status) -> Tone:
    """The tone of a status: known beforehand is muted, everything unplanned is bad."""
    return _TONES.get(status, Tone.BAD)


def name_of(variant: Variant) -> str:
    """A variant with its case and place, short enough for a sentence."""
    case, name = shorten(variant.case.planned.name, LONGEST_NAME), shorten(variant.planned.name, LONGEST_NAME)
    return f"{case} · {name} · {variant.case.place.label}"


def told(outcome: Outcome, *probes: str) -> str:
    """`timing failed: out of memory`."""
    words = " ".join(word for word in (", ".join(probes), outcome.status.value) if word)
    return f"{words}: {shorten(outcome.reason, LONGEST_REASON)}" if outcome.reason else words


def gain_cell(interval: Interval | None) -> Cell:
    """The gain above its bounds; what is not told apart from 1 is muted."""
    estimate, bounds = numbers.gain_with_bounds(interval)
    return Cell(estimate, bounds if interval is not None else "", gain_tone(interval))


def gain_tone(interval: Interval | None) -> Tone:
    """Good or bad only where the interval excludes 1 by more than the smallest effect worth a verdict."""
    if interval is None or not differs(interval):
        return Tone.MUTED
    return Tone.GOOD if interval.estimate > 1 else Tone.WARN


def level_of(places: Sequence[Place]) -> str:
    """`99 % interval`; without the level where runs differ in it."""
    levels = {place.level for place in places}
    return f"{numbers.percent(levels.pop())} interval" if len(levels) == 1 else "interval"


def jit_against_eager(cases: Iterable[Case]) -> tuple[Interval, ...]:
    """The gain of jit over eager, for every implementation that was timed both ways in the same case."""
    pairs = []
    for case in cases:
        by_name = {(one.planned.implementation, one.planned.mode): one for one in case.variants}
        for (implementation, mode), variant in by_name.items():
            eager = by_name.get((implementation, "eager"))
            gain = variant.speedup_over(eager) if mode == "jit" and eager is not None else None
            if gain is not None:
                pairs.append(gain)
    return tuple(pairs)


def jit_sentence(cases: Iterable[Case]) -> str:
    """`jit beats eager in 12 of 14 measured pairs (median 8.7×)`."""
    pairs = jit_against_eager(cases)
    if not pairs:
        return "no pair of eager and jit was measured"
    wins = sum(differs(pair) and pair.estimate > 1 for pair in pairs)
    middle = summaries.median(pair.estimate for pair in pairs)
    return f"jit beats eager in {wins} of {one_of(len(pairs), 'measured pair')} (median {numbers.gain(middle)})"


def status_counts(variants: Iterable[Variant]) -> dict[Status, int]:
    """How many variants have each status, worst first; statuses without any are left out."""
    statuses = [variant.status for variant in variants]
    return {status: statuses.count(status) for status in reversed(Status) if status in statuses}


def incomplete(variants: Iterable[Variant]) -> tuple[Variant, ...]:
    """Variants that failed, are wrong or missing; worst first."""
    order = list(Status)
    found = [variant for variant in variants if variant.status in INCOMPLETE]
    return tuple(sorted(found, key=lambda variant: -order.index(variant.status)))


def unreached_target(variant: Variant) -> str:
    """`target ±2 % not reached: ±3.1 %`, or empty: of the speed-up, or of the time itself for a lone variant."""
    timed = [other for other in variant.case.variants if other.time is not None]
    interval = variant.speedup if variant.speedup is not None else variant.time if len(timed) == 1 else None
    if interval is None:
        return ""
    target = variant.case.place.run.manifest.settings.target_half_width
    reached = numbers.usable(interval.half_width)
    if reached is None:
        return f"no interval: {one_of(interval.count, 'launch', 'launches')}"
    if reached <= target:
        return ""
    # 2.03 % is beyond a target of 2 %, and has to read so.
    close = numbers.percent(reached) == numbers.percent(target)
    reached_text = f"±{numbers.percent(reached, digits=3 if close else 2)}"
    if reached > 1:
        reached_text = f"beyond ±{numbers.percent(1)}"
    return f"target ±{numbers.percent(target)} not reached: {reached_text}"
