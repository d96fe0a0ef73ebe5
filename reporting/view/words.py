"""Sentences and cells that several sections share."""

from __future__ import annotations

import statistics as summaries
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from harness.record import INCOMPLETE, Outcome, Status
from harness.record.statistics import Interval, differs

from .. import numbers
from ..text import counted, shorten
from .measured import Case, Place, Variant, does_not_fit
from .parts import Cell, Group, Row, Table, Tone

LONGEST_NAME = 80
LONGEST_REASON = 160
"""In a sentence or a table of numbers; the section on what has no number gives every reason in full."""

LONGEST_TERM = 40
"""Of one name among several in a sentence."""

MOST_NOTES = 10
"""More would bury what the section says."""

_TONES = {Status.OK: Tone.PLAIN, Status.SKIPPED: Tone.MUTED, Status.UNSUPPORTED: Tone.MUTED}


def tone_of(status: Status) -> Tone:
    """The tone of a status: known beforehand is muted, everything unplanned is bad."""
    return _TONES.get(status, Tone.BAD)


def name_of(variant: Variant) -> str:
    """A variant with its case and place, short enough for a sentence."""
    case, name = shorten(variant.case.planned.name, LONGEST_NAME), shorten(variant.planned.name, LONGEST_NAME)
    return f"{case} · {name} · {variant.case.place.label}"


def name_cell(variant: Variant) -> Cell:
    """The heading of a variant's row."""
    tone = Tone.WARN if variant.does_not_fit and variant.status not in INCOMPLETE else tone_of(variant.status)
    return Cell(variant.planned.name, tone=tone)


def noted(variants: Iterable[Variant], probe: str) -> tuple[str, ...]:
    """What a probe noted, each sentence once with who it is of, the most frequent first."""
    alike: dict[str, list[Variant]] = {}
    for variant in variants:
        for note in variant.notes_of(probe):
            alike.setdefault(note, []).append(variant)
    ordered = sorted(alike.items(), key=lambda item: -len(item[1]))
    lines = [f"{name_of(who[0]) if len(who) == 1 else counted(len(who), 'variant')}: {note}" for note, who in ordered]
    left = len(lines) - MOST_NOTES
    return (*lines[:MOST_NOTES], *([f"{counted(left, 'note')} more, in the record."] if left > 0 else []))


def told(outcome: Outcome, *probes: str) -> str:
    """`timing failed: out of memory`."""
    if does_not_fit(outcome):
        # Neither a failure nor a lack of support: the program is fine, for a larger device.
        return shorten(outcome.reason or "", LONGEST_REASON)
    words = " ".join(word for word in (", ".join(probes), outcome.status.value) if word)
    return f"{words}: {shorten(outcome.reason, LONGEST_REASON)}" if outcome.reason else words


def grouped(
    cases: Iterable[Case], row: Callable[[Variant], Row | None], detail: Callable[[Case], str]
) -> tuple[Group, ...]:
    """The rows of every case that has some, below its name."""
    found = ((case, tuple(one for variant in case.variants if (one := row(variant)) is not None)) for case in cases)
    return tuple(Group(rows, case.label, detail(case)) for case, rows in found if rows)


def without_empty(table: Table, kept: int = 1) -> Table:
    """The table without the columns in which nobody has a value: what no run has measured is not shown as missing.

    Args:
      kept: That many columns at the beginning stay whatever they hold.
    """
    shown = [
        index
        for index in range(len(table.columns))
        if index < kept or any(not _is_empty(row.cells[index]) for row in table.rows)
    ]
    groups = tuple(
        replace(group, rows=tuple(replace(row, cells=tuple(row.cells[i] for i in shown)) for row in group.rows))
        for group in table.groups
    )
    return replace(table, columns=tuple(table.columns[i] for i in shown), groups=groups)


def _is_empty(cell: Cell) -> bool:
    return cell.text in ("", numbers.MISSING) and not (cell.detail or cell.fold or cell.mark)


def measured_cell(interval: Interval | None) -> Cell:
    """A time above its bounds; without bounds where it has none, which a note below the table says."""
    text, bounds = numbers.time_with_bounds(interval)
    return Cell(text, "" if bounds == numbers.MISSING else bounds, Tone.PLAIN if interval is not None else Tone.MUTED)


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
    return f"jit beats eager in {wins} of {counted(len(pairs), 'measured pair')} (median {numbers.gain(middle)})"


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
        return f"no interval: {counted(interval.count, 'launch', 'launches')}"
    if reached <= target:
        return ""
    # 2.03 % is beyond a target of 2 %, and has to read so.
    close = numbers.percent(reached) == numbers.percent(target)
    reached_text = f"±{numbers.percent(reached, digits=3 if close else 2)}"
    if reached > 1:
        reached_text = f"beyond ±{numbers.percent(1)}"
    return f"target ±{numbers.percent(target)} not reached: {reached_text}"
