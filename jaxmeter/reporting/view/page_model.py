"""What a view is made of: plain data that a renderer only machines. No number is left to format, none to decide."""

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
    """A point between bounds on the table's common axis, all as shares of its width.

    `origin` is the line at 1, if any.
    """

    low: float
    point: float
    high: float
    origin: float | None = None


@dataclass(frozen=True)
class StackMark:
    """Shares of the table's common axis, one for each of the table's `stack` names."""

    shares: tuple[float, ...]


@dataclass(frozen=True)
class DotsMark:
    """A dot for each process on an axis that the case's variants share, as shares of its width."""

    dots: tuple[float, ...]


Mark = IntervalMark | StackMark | DotsMark


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
    """One logarithmic plot; `unit` is `s` for times, `B` for bytes and empty for counts.

    `marked` is the x to look at, where one point stands for what is spoken of.
    """

    title: str
    x_label: str
    unit: str
    series: tuple[Series, ...]
    marked: float | None = None


@dataclass(frozen=True)
class Plot:
    """Panels side by side with one legend; `alt` says in words what they show."""

    title: str
    alt: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class End:
    """One way to run an implementation: its mode, and its time in seconds with the bounds where it has some."""

    mode: str
    time_s: float
    bounds: tuple[float, float] | None = None


@dataclass(frozen=True)
class Bar:
    """An implementation of a case with what it takes in each mode."""

    name: str
    ends: tuple[End, ...]


@dataclass(frozen=True)
class Dumbbells:
    """A bar for each implementation from its fastest mode to its slowest, on one logarithmic axis of seconds."""

    title: str
    alt: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class Part:
    """A plot, tables and notes under one small heading. `id` is that of the plot, which stands on the page once."""

    title: str = ""
    plot: Plot | Dumbbells | None = None
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    id: str = ""


@dataclass(frozen=True)
class Section:
    """A question and what answers it. A section without parts says in `answer` why it is empty.

    Args:
      packed: Whether its parts are unpacked when somebody opens it: what a reader without a script can do without.
    """

    id: str
    short: str
    question: str
    answer: str
    parts: tuple[Part, ...] = ()
    packed: bool = False

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
      rank: The lowest come first.
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
    rank: float = float("inf")


@dataclass(frozen=True)
class Value:
    """A number in words, and as it was read for whoever sorts or exports it; None where there is none."""

    text: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True)
class Result:
    """What a reader compares of one variant at one place: times in seconds, memory in bytes.

    `memory_of` is plan, call, or empty; `change` is what was found since an earlier run, empty where that is nothing.
    """

    variant: str
    where: str
    run: str
    status: str
    tone: Tone
    time: Value
    speedup: Value
    first: Value
    memory: Value
    memory_of: str
    change: str = ""


@dataclass(frozen=True)
class KeptFile:
    """A file that a run keeps beside its numbers, and the shell command that opens it."""

    what: str
    command: str
    note: str = ""


@dataclass(frozen=True)
class CaseView:
    """All that is known of a case, on every machine that ran it. Its `id` is the fragment that opens it.

    Args:
      scaling: Figures of its suite, each with the case's size marked.
      claims: How many published claims are of it.
    """

    id: str
    name: str
    about: str
    results: tuple[Result, ...]
    sections: tuple[Section, ...]
    scaling: tuple[Part, ...]
    claims: int
    files: tuple[KeptFile, ...]


@dataclass(frozen=True)
class SuiteView:
    """A suite: its question and answer, figures, and the results of its cases.

    Args:
      id: The fragment that opens it.
      parts: What stands on the page itself.
      table: Results of the first cases, as many as a page holds that is read without a script.
      left_out: How many results the table lacks.
      more: What is unpacked when the suite is opened.
    """

    id: str
    name: str
    answer: AnswerLine
    parts: tuple[Part, ...]
    table: Table
    left_out: int
    more: tuple[Part, ...]
    cases: tuple[CaseView, ...]


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
    facts: tuple[Item, ...]
    changed: tuple[Item, ...]
    change_points: tuple[Item, ...]
    suites: tuple[SuiteView, ...]
    export: str
    sections: tuple[Section, ...]
