"""Cells and columns that several sections share: where a column is a metric, both are made from its entry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from jaxmeter.harness.metrics.metric import Reading
from jaxmeter.harness.metrics.reading import Case, Run, Variant
from jaxmeter.harness.metrics.statistics import Interval, differs
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.record import INCOMPLETE, Status

from .. import numbers
from ..write import write, write_reading
from .cases import label_case
from .doubts import find_doubts
from .page_model import Cell, Column, Group, Row, Table
from .tone import Tone
from .trust import WIDE, is_vague

_TONES = {
    Status.OK: Tone.PLAIN,
    Status.SKIPPED: Tone.MUTED,
    Status.UNSUPPORTED: Tone.MUTED,
    Status.TOO_LARGE: Tone.WARN,
}


def find_tone(status: Status) -> Tone:
    """The tone of a status: known beforehand is muted, everything unplanned is bad."""
    return _TONES.get(status, Tone.BAD)


def make_name_cell(variant: Variant) -> Cell:
    """The heading of a variant's row."""
    is_warning = variant.is_too_large and variant.status not in INCOMPLETE
    return Cell(variant.planned.name, tone=Tone.WARN if is_warning else find_tone(variant.status))


def make_column(metric: str, title: str | None = None, detail: str | None = None) -> Column:
    """A metric's column, with the heading that its entry has unless the table needs another."""
    entry = METRICS[metric]
    return Column(entry.heading if title is None else title, entry.detail if detail is None else detail, numeric=True)


def make_cell(reading: Reading, detail: str = "") -> Cell:
    """A metric's number, with nothing of its interval."""
    return Cell(write(reading.metric, reading.estimate), detail)


def make_interval_cell(reading: Reading) -> Cell:
    """A metric's number above its bounds, or the range of its processes where they give none."""
    text, bounds = write_reading(reading)
    tone = Tone.PLAIN if reading.interval is not None else Tone.MUTED
    return Cell(text, "" if bounds == numbers.MISSING else bounds, tone)


def make_time_cells(variant: Variant) -> tuple[Cell, Cell]:
    """Return the time and the normalised time, each above its bounds."""
    raw, normalised = variant.read("execution_s"), variant.read("normalised_s")
    missing = Cell(numbers.MISSING, tone=Tone.MUTED)
    return _mark_doubt(variant, raw), missing if normalised.interval is None else _mark_doubt(variant, normalised)


def _mark_doubt(variant: Variant, reading: Reading) -> Cell:
    """Return the number, marked where there is a doubt, above its bounds and a word where these are far apart."""
    text, bounds = write_reading(reading)
    if reading.interval is None:
        return Cell(text)
    detail = f"{bounds} {WIDE}" if is_vague(reading.interval) else bounds
    return Cell(f"! {text}", detail, Tone.WARN) if find_doubts(variant, reading) else Cell(text, detail)


def make_speedup_cell(interval: Interval | None) -> Cell:
    """The speedup above its bounds; what is not told apart from 1 is muted."""
    estimate, bounds = numbers.speedup_with_bounds(interval)
    return Cell(estimate, bounds if interval is not None else "", find_speedup_tone(interval))


def find_speedup_tone(interval: Interval | None) -> Tone:
    """Good or worse only where the interval excludes 1 by more than the smallest effect worth a verdict."""
    if interval is None or not differs(interval):
        return Tone.MUTED
    return Tone.GOOD if interval.estimate > 1 else Tone.WORSE


def group_rows(
    cases: Iterable[Case], row: Callable[[Variant], Row | None], detail: Callable[[Case], str] = lambda case: ""
) -> tuple[Group, ...]:
    """The rows of every case that has some, below its name and a detail."""
    found = ((case, tuple(one for variant in case.shown if (one := row(variant)) is not None)) for case in cases)
    return tuple(Group(rows, label_case(case), detail(case)) for case, rows in found if rows)


def drop_empty_columns(table: Table, kept: int = 1) -> Table:
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
    return cell.text in ("", numbers.MISSING) and not (cell.detail or cell.fold)


def name_level(runs: Sequence[Run], interval: str = "interval") -> str:
    """`99 % interval`; without the level where runs differ in it."""
    levels = {run.level for run in runs}
    return f"{numbers.percent(levels.pop())} {interval}" if len(levels) == 1 else interval
