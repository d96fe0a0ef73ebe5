"""Cells, columns and tables of variants, and what a reader must know next to a number: doubts, or why there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from jaxmeter.document import numbers
from jaxmeter.document.model import Cell, Column, Group, Part, Row, Section, Table, Tone
from jaxmeter.harness.metrics.metric import Fault, Lack, Metric, Reading, Summary
from jaxmeter.harness.metrics.plausibility import TIMES, find_disagreement
from jaxmeter.harness.metrics.precision import describe_smallest, explain_scatter, list_smallest, suggest_more
from jaxmeter.harness.metrics.reading import Case, Run, Variant
from jaxmeter.harness.metrics.statistics import Interval, differs
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.metrics.write import write, write_reading
from jaxmeter.harness.plan.probes import PROBES
from jaxmeter.harness.record import INCOMPLETE, MemoryDetails, Outcome, Status
from jaxmeter.harness.record.outcomes import describe_trap, find_traps, name_trap
from jaxmeter.harness.record.wording import counted, shorten

from .runs import label_case, list_notes_of, name_variant

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


NOTHING = Cell(numbers.MISSING, tone=Tone.MUTED)

_TONES = {
    Status.OK: Tone.PLAIN,
    Status.SKIPPED: Tone.MUTED,
    Status.UNSUPPORTED: Tone.MUTED,
    Status.TOO_LARGE: Tone.WARN,
}


def find_tone(status: Status) -> Tone:
    """Return the tone of a status: known beforehand is muted, everything unplanned is bad."""
    return _TONES.get(status, Tone.BAD)


def make_name_cell(variant: Variant) -> Cell:
    """Return the heading of a variant's row."""
    is_warning = variant.is_too_large and variant.status not in INCOMPLETE
    return Cell(variant.planned.name, tone=Tone.WARN if is_warning else find_tone(variant.status))


def make_column(metric: str, title: str | None = None, detail: str | None = None) -> Column:
    """Return a metric's column, with the heading that its entry has unless the table needs another."""
    entry = METRICS[metric]
    return Column(entry.heading if title is None else title, entry.detail if detail is None else detail, numeric=True)


def make_cell(reading: Reading, detail: str = "") -> Cell:
    """Return a metric's number, with nothing of its interval."""
    tone = Tone.PLAIN if reading.interval is not None else Tone.MUTED
    return Cell(write(reading.metric, reading.estimate), detail, tone)


def has_interval(metric: Metric) -> bool:
    """Return whether a metric is a mean of processes."""
    return metric.summary in (Summary.TIMING, Summary.PROCESSES)


def make_interval_cell(reading: Reading) -> Cell:
    """Return a metric's number above its bounds, or the range of its processes where they give none."""
    text, bounds = write_reading(reading)
    tone = Tone.PLAIN if reading.interval is not None else Tone.MUTED
    return Cell(text, "" if bounds == numbers.MISSING else bounds, tone)


def make_time_cells(variant: Variant) -> tuple[Cell, Cell]:
    """Return the time and the normalised time, each above its bounds."""
    raw, normalised = variant.read("execution_s"), variant.read("normalised_s")
    return _mark_doubt(variant, raw), _mark_doubt(variant, normalised)


def _mark_doubt(variant: Variant, reading: Reading) -> Cell:
    """Return the number, marked where there is a doubt, above its bounds and a word where these are far apart."""
    text, bounds = write_reading(reading)
    if reading.interval is None:
        return NOTHING
    detail = f"{bounds} {WIDE}" if is_vague(reading.interval) else bounds
    return Cell(f"! {text}", detail, Tone.WARN) if find_doubts(variant, reading) else Cell(text, detail)


def make_speedup_cell(interval: Interval | None) -> Cell:
    """Return the speedup above its bounds; what does not differ from 1 is muted."""
    estimate, bounds = numbers.speedup_with_bounds(interval)
    return Cell(estimate, bounds if interval is not None else "", find_speedup_tone(interval))


def find_speedup_tone(interval: Interval | None) -> Tone:
    """Return good or worse only where the interval excludes 1 by more than the smallest effect worth a verdict."""
    if interval is None or not differs(interval):
        return Tone.MUTED
    return Tone.GOOD if interval.estimate > 1 else Tone.WORSE


def drop_empty_columns(table: Table) -> Table:
    """Return the table without the columns in which nobody has a value: what no run has measured is not missing."""
    shown = [
        index
        for index in range(len(table.columns))
        if index == 0 or any(not _is_empty(row.cells[index]) for row in table.rows)
    ]
    if len(shown) == len(table.columns):
        return table
    groups = tuple(
        replace(group, rows=tuple(replace(row, cells=tuple(row.cells[i] for i in shown)) for row in group.rows))
        for group in table.groups
    )
    return replace(table, columns=tuple(table.columns[i] for i in shown), groups=groups)


def _is_empty(cell: Cell) -> bool:
    return cell.text in ("", numbers.MISSING) and not (cell.detail or cell.fold)


def name_level(runs: Sequence[Run], interval: str = "interval") -> str:
    """Return `99 % interval`; without the level where runs differ in it."""
    levels = {run.level for run in runs}
    return f"{numbers.percent(levels.pop())} {interval}" if len(levels) == 1 else interval


@dataclass(frozen=True)
class VariantColumn:
    """A column of a table of variants."""

    heading: Column
    make_cell: Callable[[Variant], Cell]


def read_column(
    metric: str, title: str | None = None, detail: str | None = None, *, with_interval: bool = True
) -> VariantColumn:
    """Return the column of a metric: numbers that are means of processes stand above their intervals."""
    make = make_interval_cell if with_interval and has_interval(METRICS[metric]) else make_cell
    return VariantColumn(make_column(metric, title, detail), lambda variant: make(variant.read(metric)))


def make_variant_table(
    cases: Sequence[Case],
    caption: str,
    columns: Sequence[str | VariantColumn],
    has_row: Callable[[Variant], bool] = lambda variant: True,
    *,
    detail: Callable[[Case], str] = lambda case: "",
    fold: str = "",
) -> Table:
    """Return a table with a row for each variant, and a column for each metric of which one has a number.

    Args:
      columns: Metrics, by name where their entries say all; `make_cell` sees only variants that have a row.
      detail: What stands next to the name of a case.
    """
    made = [read_column(column) if isinstance(column, str) else column for column in columns]
    groups = []
    for case in cases:
        variants = [variant for variant in case.shown if has_row(variant)]
        rows = (Row((make_name_cell(variant), *(column.make_cell(variant) for column in made))) for variant in variants)
        groups += [Group(tuple(rows), label_case(case), detail(case))] if variants else []
    headings = (Column("Variant"), *(column.heading for column in made))
    return drop_empty_columns(Table(caption, headings, tuple(groups), fold=fold))


@dataclass(frozen=True)
class CaseSection:
    """A section of a case: tables of its variants, and notes.

    Args:
      place: Among the sections of a case, from the first to the last.
      list_tables: Of the case on each machine; a table without rows is left out.
      list_notes: Below the tables.
    """

    place: int
    id: str
    short: str
    question: str
    list_tables: Callable[[Sequence[Case]], Iterable[Table]]
    list_notes: Callable[[Sequence[Case]], Iterable[str]] = lambda cases: ()

    def make(self, cases: Sequence[Case]) -> Section | None:
        """Return the section of a case; None where it has nothing to show."""
        tables = tuple(table for table in self.list_tables(cases) if table.groups)
        notes = tuple(self.list_notes(cases))
        if not tables and not notes:
            return None
        return Section(self.id, self.short, self.question, "", (Part(tables=tables, notes=notes),))
