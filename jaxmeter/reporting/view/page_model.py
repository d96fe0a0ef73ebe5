"""What a view is made of: plain data that a renderer only machines. No number is left to format, none to decide."""

from __future__ import annotations

from dataclasses import dataclass

from ..text import counted
from .overview_model import Card, Overview
from .tone import Tone


@dataclass(frozen=True)
class Cell:
    """A table cell: a text, what stands smaller below it, and a text to unfold.

    Args:
      target: The id of the row or group that tells more.
      shade: Of a heat map, such as `slower-2`: direction, and how dark it is.
      hint: What who hovers reads.
    """

    text: str = ""
    detail: str = ""
    tone: Tone = Tone.PLAIN
    fold: str = ""
    fold_title: str = ""
    target: str = ""
    shade: str = ""
    hint: str = ""


@dataclass(frozen=True)
class Column:
    """A column's heading; `numeric` columns are aligned right."""

    title: str
    detail: str = ""
    numeric: bool = False


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
    """A table whose caption says what to see in it."""

    caption: str
    columns: tuple[Column, ...]
    groups: tuple[Group, ...]
    fold: str = ""

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows, without their groups."""
        return tuple(row for group in self.groups for row in group.rows)


@dataclass(frozen=True)
class Part:
    """Tables and notes under one small heading."""

    title: str = ""
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()


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
        """`233 rows, 5 notes`: what unfolds below its answer."""
        rows = sum(len(table.rows) for part in self.parts for table in part.tables)
        notes = sum(len(part.notes) for part in self.parts)
        counts = ((rows, "row"), (notes, "note"))
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

    `memory_of` is plan, call, or empty; `doubt` says why not to rely on the time or the speedup; `change` is what was
    found since an earlier run. Each is empty where there is nothing to say.
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
    doubt: str = ""
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
      heading: Its name, with the time of the variant that leads it.
      figures: How fast, where the time goes, first call, operations, memory, as far as they are known.
      claims: How many published claims are of it.
    """

    id: str
    name: str
    heading: str
    about: str
    figures: tuple[Card, ...]
    results: tuple[Result, ...]
    sections: tuple[Section, ...]
    claims: int
    files: tuple[KeptFile, ...]


@dataclass(frozen=True)
class SuiteView:
    """A suite: its question and answer, figures, and the results of its cases.

    Args:
      id: The fragment that opens it.
      table: Results of the first cases, as many as a page holds that is read without a script.
      left_out: How many results the table lacks.
      figures: How fast, growth, first calls, memory: unpacked when the suite is opened, as are its parts.
      parts: Exponents, values and notes of what grows.
    """

    id: str
    name: str
    answer: AnswerLine
    table: Table
    left_out: int
    figures: tuple[Card, ...]
    parts: tuple[Part, ...]
    cases: tuple[CaseView, ...]


@dataclass(frozen=True)
class ReleasesView:
    """What each of a series of runs changed: a heat map, and the cases that changed most.

    Args:
      answer: How many changes are confirmed.
      how_to_read: The table.
      table: A row for each variant that changed, a column for each run.
      conditions: A row for each column of `table`, with its machine and its Python.
      cards: The time in each run of the cases that changed most.
    """

    short: str
    question: str
    answer: str
    how_to_read: str
    table: Table
    conditions: Table
    note: str
    cards: tuple[Card, ...]


@dataclass(frozen=True)
class Page:
    """The whole report."""

    title: str
    overview: Overview
    releases: ReleasesView | None
    subtitle: str
    finding: str
    summary: tuple[str, ...]
    answers: tuple[AnswerLine, ...]
    attention: tuple[Item, ...]
    warnings: tuple[Item, ...]
    matrix: Table | None
    matrix_note: str
    changed: tuple[Item, ...]
    change_points: tuple[Item, ...]
    suites: tuple[SuiteView, ...]
    export: str
    sections: tuple[Section, ...]
