"""What a view is made of: plain data that a renderer only places. No number is left to format, none to decide."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ..text import counted


class Tone(StrEnum):
    """What a text means, for renderers that have colour. Words and signs say the same."""

    PLAIN = "plain"
    MUTED = "muted"
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True)
class IntervalMark:
    """A point between bounds on the table's common axis, all as shares of its width; `origin` is the line at 1."""

    low: float
    point: float
    high: float
    origin: float


@dataclass(frozen=True)
class StackMark:
    """Shares of the table's common axis, one for each of the table's `stack` names."""

    shares: tuple[float, ...]


Mark = IntervalMark | StackMark


@dataclass(frozen=True)
class Cell:
    """A table cell: a text, what stands smaller below it, a mark, and a text to unfold.

    `target` is the id of the row or group that tells more.
    """

    text: str = ""
    detail: str = ""
    tone: Tone = Tone.PLAIN
    mark: Mark | None = None
    fold: str = ""
    fold_title: str = ""
    target: str = ""


@dataclass(frozen=True)
class Column:
    """A column's heading; `numeric` columns are aligned right, `plot` columns hold marks."""

    title: str
    detail: str = ""
    numeric: bool = False
    plot: bool = False


@dataclass(frozen=True)
class Row:
    """The first cell is the row's heading."""

    cells: tuple[Cell, ...]
    id: str = ""


@dataclass(frozen=True)
class Group:
    """Rows that share a heading; an empty title means none."""

    rows: tuple[Row, ...]
    title: str = ""
    detail: str = ""
    id: str = ""


@dataclass(frozen=True)
class Table:
    """A table whose caption says what to see in it. `stack` names the parts of its stacked marks."""

    caption: str
    columns: tuple[Column, ...]
    groups: tuple[Group, ...]
    stack: tuple[str, ...] = ()
    fold: str = ""

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows, without their groups."""
        return tuple(row for group in self.groups for row in group.rows)


@dataclass(frozen=True)
class Point:
    """A point in base units, both > 0, with the bounds of y where it has some; a doubtful one is drawn hollow."""

    x: float
    y: float
    bounds: tuple[float, float] | None = None
    doubtful: bool = False


@dataclass(frozen=True)
class Series:
    """A named line; points by x."""

    name: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Panel:
    """One logarithmic plot; `unit` is `s` for times, `B` for bytes and empty for counts."""

    title: str
    x_label: str
    unit: str
    series: tuple[Series, ...]


@dataclass(frozen=True)
class Plot:
    """Panels side by side with one legend; `alt` says in words what they show."""

    title: str
    alt: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Part:
    """A plot, tables and notes under one small heading."""

    title: str = ""
    plot: Plot | None = None
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Section:
    """A question and what answers it. A section without parts says in `answer` why it is empty."""

    id: str
    short: str
    question: str
    answer: str
    parts: tuple[Part, ...] = ()

    @property
    def contents(self) -> str:
        """`233 rows, 5 figures`: what unfolds below its answer."""
        rows = sum(len(table.rows) for part in self.parts for table in part.tables)
        figures = sum(part.plot is not None for part in self.parts)
        notes = sum(len(part.notes) for part in self.parts)
        counts = ((rows, "row"), (figures, "figure"), (notes, "note"))
        return ", ".join(counted(number, noun) for number, noun in counts if number)


@dataclass(frozen=True)
class Item:
    """A line of a list; `target` is the id of the row that tells more."""

    text: str
    label: str = ""
    target: str = ""
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True)
class AnswerLine:
    """What answers a suite's question.

    Args:
      text: A sentence with a number and its interval, or with the reason why there is none.
      of: The case that stands for the suite, and where it ran.
      target: The id of that case.
    """

    suite: str
    question: str
    text: str
    of: str
    tone: Tone = Tone.PLAIN
    target: str = ""


@dataclass(frozen=True)
class Page:
    """The whole report."""

    title: str
    subtitle: str
    finding: str
    summary: tuple[str, ...]
    answers: tuple[AnswerLine, ...]
    attention: tuple[Item, ...]
    warnings: tuple[Item, ...]
    matrix: Table | None
    matrix_note: str
    sections: tuple[Section, ...]
