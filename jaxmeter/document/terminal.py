"""A document in a terminal: sentences of at most 100 columns, tables of 80, colours only where there are any."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from jaxmeter.document.layout import Field, GridLine, fold, place_table
from jaxmeter.document.model import Document, Group, Item, Part, Row, Table, Tone
from jaxmeter.document.numbers import SPACE
from jaxmeter.harness.record.wording import visible

_PRODUCT = re.compile(r"(?<=\w)·(?=\w)")

WIDEST, WIDEST_TABLE = 100, 80
"""Columns of a sentence and of a table, however wide the terminal is."""

INDENT = "  "

STYLES = {
    Tone.PLAIN: "",
    Tone.MUTED: "dim",
    Tone.GOOD: "green",
    Tone.WARN: "yellow",
    Tone.WORSE: "dark_orange",
    Tone.BAD: "red",
}

_LIKENESSES = str.maketrans(
    {"µ": "u", "×": "x", "—": "-", "−": "-", "–": "-", "±": "+-", "·": "|", "…": "~", SPACE: " ", "→": "->"}
    | {"●": "o", "■": "#", "◆": "*", "≥": ">=", "²": "^2"}
)


def open_console(*, stderr: bool = False) -> Console:
    """Stdout, or stderr. Rich takes 80 columns where there is no terminal; a log has room for all."""
    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, width=None if stream.isatty() else WIDEST)


def show(document: Document, console: Console | None = None) -> None:
    """Print a document; with likenesses of its signs where the output takes ASCII only."""
    console = console or open_console()
    is_ascii = not console.encoding.lower().startswith("utf")
    layout = _Layout(min(console.width, WIDEST), is_ascii=is_ascii)
    for line in layout.place(document):
        if is_ascii:
            line.plain = line.plain.replace(SPACE, " ")
        console.print(line, soft_wrap=True, markup=False, highlight=False, emoji=False)


def write(document: Document, width: int = WIDEST) -> str:
    """Return a document as plain text."""
    return "\n".join(line.plain.rstrip(" ") for line in _Layout(width).place(document))


def to_ascii(text: str) -> str:
    """The nearest ASCII text: signs have a likeness, the rest is a `?`."""
    return _PRODUCT.sub("*", text).translate(_LIKENESSES).encode("ascii", "replace").decode()


@dataclass(frozen=True)
class _Layout:
    """Places a document in lines of at most `width` columns."""

    width: int
    is_ascii: bool = False

    def place(self, document: Document) -> Iterator[Text]:
        """Yield all lines, with an empty line between parts where one has a heading or a table."""
        before = None
        if document.title:
            before = Part()
            yield from self._write_sentence(document.title, "bold")
        for part in document.parts:
            if part.is_folded or part.is_empty:
                continue
            if before and any((part.title, part.tables, before.title, before.tables)):
                yield Text()
            before = part
            yield from self._place_part(part)

    def _place_part(self, part: Part) -> Iterator[Text]:
        indent = INDENT if part.title else ""
        if part.title:
            yield from self._write_sentence(part.title, "bold")
        for item in part.items:
            yield from self._write_item(item, indent)
        for place, table in enumerate(part.tables):
            if place:
                yield Text()
            yield from self._place_table(table)
        for note in part.notes:
            yield from self._write_sentence(note, "dim", indent)

    def _write_item(self, item: Item, indent: str) -> Iterator[Text]:
        style = STYLES[item.tone]
        if not item.label:
            yield from self._write_sentence(item.text, style, indent)
            return
        label = self._clean(item.label)
        if cell_len(label) > self.width // 2:
            yield from self._write_sentence(f"{item.label}: {item.text}", style, indent)
            return
        more = 2 * INDENT
        first, *lines = fold(self._clean(item.text), self.width - len(more), cell_len(label))
        yield Text.assemble(INDENT, (label, style), INDENT, first)
        yield from (Text(more + line) for line in lines)

    def _write_sentence(self, text: str, style: str, indent: str = "") -> Iterator[Text]:
        """Yield a sentence in lines, those after the first indented by more."""
        more = indent + INDENT
        first, *lines = fold(self._clean(text), self.width - len(more), -len(INDENT))
        yield Text(indent + first, style)
        yield from (Text(more + line, style) for line in lines)

    def _place_table(self, table: Table) -> Iterator[Text]:
        if table.caption:
            yield from self._write_sentence(table.caption, "dim")
        is_split = [
            column.numeric and any(row.cells[place].detail for row in table.rows)
            for place, column in enumerate(table.columns)
        ]
        fields = []
        for column, has_own in zip(table.columns, is_split, strict=True):
            title = column.title if column.numeric else ", ".join(filter(None, (column.title, column.detail)))
            fields.append(Field(self._clean(title), column.numeric))
            if has_own:
                fields.append(Field(self._clean(column.detail), is_number=True, is_joined=True))
        lines = [line for group in table.groups for line in self._list_lines(group, is_split)]
        yield from place_table(fields, lines, min(self.width, WIDEST_TABLE))

    def _list_lines(self, group: Group, is_split: list[bool]) -> Iterator[GridLine]:
        if group.title:
            title = "  ".join(filter(None, (group.title, group.detail)))
            yield GridLine([Text(self._clean(title))], is_heading=True)
        for row in group.rows:
            yield self._make_line(row, is_split, INDENT if group.title else "")

    def _make_line(self, row: Row, is_split: list[bool], indent: str) -> GridLine:
        """A number's interval is a text of its own; what stands below another cell is below the row."""
        texts: list[Text] = []
        below: list[Text] = []
        for cell, has_own in zip(row.cells, is_split, strict=True):
            style = STYLES[cell.tone]
            texts.append(Text(("" if texts else indent) + self._clean(cell.text), style))
            if has_own:
                texts.append(Text(self._clean(cell.detail), style))
            elif cell.detail:
                below.append(Text(self._clean(cell.detail)))
        return GridLine(texts, below)

    def _clean(self, text: str) -> str:
        """Return a text that is safe to print; in ASCII with its narrow spaces, at which no line breaks."""
        text = visible(text)
        return SPACE.join(map(to_ascii, text.split(SPACE))) if self.is_ascii else text
