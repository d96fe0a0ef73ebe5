"""What a document is made of: plain data that a renderer only places. No number is left to format, none to decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from jaxmeter.harness.record.wording import counted


class Tone(StrEnum):
    """What a text means, for renderers that have colour. Words and signs say the same.

    WARN is a doubt about a number, WORSE a number that is sure and worse than what it is compared with, BAD a failure.
    """

    PLAIN = "plain"
    MUTED = "muted"
    GOOD = "good"
    WARN = "warn"
    WORSE = "worse"
    BAD = "bad"


@dataclass(frozen=True)
class Cell:
    """A table cell: a text, what stands smaller below it, and a text to unfold.

    Args:
      detail: Of a number its interval, which a terminal aligns in a column of its own.
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
    """A table whose caption says what to see in it.

    Args:
      grouped_by: What the titles of groups are, for a format that has them in a column.
    """

    caption: str
    columns: tuple[Column, ...]
    groups: tuple[Group, ...]
    fold: str = ""
    grouped_by: str = "Case"

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows, without their groups."""
        return tuple(row for group in self.groups for row in group.rows)


@dataclass(frozen=True)
class Item:
    """A sentence, or a line of a list; `target` is the id of the row that tells more. Its label carries the tone."""

    text: str
    label: str = ""
    target: str = ""
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True)
class Part:
    """Sentences, tables and notes under one small heading.

    Args:
      is_folded: Whether a terminal leaves it out, and Markdown unfolds it below its title.
    """

    title: str = ""
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    items: tuple[Item, ...] = ()
    is_folded: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether it has nothing."""
        return not (self.title or self.tables or self.notes or self.items)


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
class Document:
    """What a verb says: a title and its parts, in the order in which somebody reads them."""

    title: str = ""
    parts: tuple[Part, ...] = ()


def say(*texts: str, tone: Tone = Tone.PLAIN, title: str = "") -> Part:
    """Return the texts that there are as sentences of a part."""
    return Part(title, items=tuple(Item(text, tone=tone) for text in texts if text))


def make_table(
    columns: Sequence[Column | str], rows: Sequence[Sequence[Cell | str]], caption: str = "", *, title: str = ""
) -> Table:
    """Return a table of one group; a text stands for a cell of it, or for the heading of a column of texts."""
    cells = (tuple(cell if isinstance(cell, Cell) else Cell(cell) for cell in row) for row in rows)
    heads = tuple(column if isinstance(column, Column) else Column(column) for column in columns)
    return Table(caption, heads, (Group(tuple(map(Row, cells)), title),))


def limit(items: Sequence[Item], most: int, where: str = "") -> tuple[Item, ...]:
    """Return the first items, and how many more there are, and where."""
    left = len(items) - most
    more = Item(f"+ {left} more{f', {where}' if where else ''}", tone=Tone.MUTED)
    return (*items[:most], more) if left > 0 else tuple(items)
