"""Cells, columns and tables of variants: where a column is a metric, both are made from the metric's entry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from jaxmeter.document import numbers
from jaxmeter.document.model import Cell, Column, Group, Part, Row, Section, Table, Tone
from jaxmeter.harness.metrics.metric import Metric, Reading, Summary
from jaxmeter.harness.metrics.reading import Case, Run, Variant
from jaxmeter.harness.metrics.statistics import Interval, differs
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.metrics.write import write, write_reading
from jaxmeter.harness.record import INCOMPLETE, Status

from .doubts import WIDE, find_doubts, is_vague
from .runs import label_case

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
