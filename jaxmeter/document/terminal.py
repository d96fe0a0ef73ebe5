"""A document in a terminal: sentences of at most 100 columns, tables of 80; no number is cut, and no name of a row."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.console import Console
from rich.text import Text

from jaxmeter.document.model import Document, Group, Item, Part, Row, Table, Tone
from jaxmeter.document.numbers import SPACE
from jaxmeter.harness.record.wording import visible

GAP = 2
"""Columns between those of a table."""

LEAST_NAME, LEAST_CUT, SHORT = 24, 12, 16
"""Columns that a row's name, another text and a last text keep where a table is too wide."""

_WORD = re.compile(r"\[[^\[\] ]+, [^\[\] ]+\][^ ]*|[^ ]+")
"""What no line breaks: an interval, and a number with its unit, since no plain space is between these."""

_PATH = re.compile(r"~?/|\.{1,2}/|[a-z0-9+]+://|\S*/\S*\.\w+")


def fold(text: str, width: int, taken: int = 0) -> list[str]:
    """Return a text in lines of at most `width` columns, of which the first has some taken. No path is broken."""
    lines, line, room = [], "", width - taken
    for word in _WORD.findall(text):
        longer = f"{line} {word}" if line else word
        if cell_len(longer) <= room:
            line = longer
            continue
        if line or taken > 0:
            lines.append(line)
        *whole, line = [word] if _PATH.match(word) else chop_cells(word, width)
        lines += whole
        taken, room = 0, width
    return [*lines, line]


@dataclass(frozen=True)
class Field:
    """A column of a grid.

    Args:
      is_number: Whether its texts are aligned right, and never cut.
      is_joined: Whether it has the intervals of the numbers to its left, which it stays with.
    """

    title: str
    is_number: bool = False
    is_joined: bool = False


@dataclass(frozen=True)
class GridLine:
    """A row of a grid: a text for each field, and the sentences below. A heading has a single text."""

    texts: Sequence[Text]
    below: Sequence[Text] = ()
    is_heading: bool = False


def place_table(fields: Sequence[Field], lines: Sequence[GridLine], width: int) -> Iterator[Text]:
    """Yield a table in lines of at most `width` columns, unless its numbers need more.

    Fields that do not fit follow in a second block, with the names of the rows again. The last field, if it has texts,
    is on the line below its row where it does not fit.
    """
    last = len(fields) - 1
    has_rest = last > 0 and not fields[last].is_number
    widths = _measure(fields, lines, width, has_rest=has_rest)
    for number, block in enumerate(_choose_blocks(fields, widths, width)):
        if number:
            yield Text()
        fitted = _shrink(fields, widths, block, width)
        yield from _write_heads(fields, block, fitted)
        for line in lines:
            if line.is_heading:
                yield from (Text(text, "bold") for text in fold(line.texts[0].plain, width))
            else:
                shown = [line.texts[place] for place in block]
                is_last = block[-1] == last
                yield from _write_row(
                    [fields[place] for place in block],
                    shown,
                    fitted,
                    width,
                    line.below if is_last else (),
                    has_rest=has_rest and is_last,
                )


def _measure(fields: Sequence[Field], lines: Sequence[GridLine], width: int, *, has_rest: bool) -> list[int]:
    """Return the width of each field: of its texts and its title, of which only a word counts if the table is too wide.

    A last field of texts that are not short takes what is left.
    """
    widths = []
    for place in range(len(fields)):
        longest = max((line.texts[place].cell_len for line in lines if not line.is_heading), default=0)
        widths.append(0 if has_rest and place == len(fields) - 1 and longest > SHORT else longest)
    whole = [max(own, cell_len(field.title)) for own, field in zip(widths, fields, strict=True)]
    if sum(whole) + GAP * (len(whole) - 1) <= width:
        return whole
    words = [max(map(cell_len, field.title.split(" "))) for field in fields]
    return list(map(max, widths, words))


def _find_least(fields: Sequence[Field], widths: Sequence[int], place: int) -> int:
    least = LEAST_CUT if place else LEAST_NAME
    return widths[place] if fields[place].is_number else min(widths[place], least)


def _choose_blocks(fields: Sequence[Field], widths: Sequence[int], width: int) -> list[list[int]]:
    """Return the fields that fit next to each other, the first one in each block."""
    blocks = [[0]]
    for place in range(1, len(fields)):
        joined = [place + 1] if place + 1 < len(fields) and fields[place + 1].is_joined else []
        least = sum(_find_least(fields, widths, each) + GAP for each in [*blocks[-1], place, *joined])
        is_full = least - GAP > width and len(blocks[-1]) > 1
        if is_full and not fields[place].is_joined:
            blocks.append([0])
        blocks[-1].append(place)
    return blocks


def _shrink(fields: Sequence[Field], widths: Sequence[int], block: Sequence[int], width: int) -> list[int]:
    """Return the widths of a block, texts cut until it fits: of the widest most."""
    fitted = [widths[place] for place in block]
    least = [_find_least(fields, widths, place) for place in block]
    while sum(fitted) + GAP * (len(block) - 1) > width:
        flexible = [index for index in range(len(block)) if fitted[index] > least[index]]
        if not flexible:
            break
        fitted[max(flexible, key=fitted.__getitem__)] -= 1
    return fitted


def _write_heads(fields: Sequence[Field], block: Sequence[int], widths: Sequence[int]) -> Iterator[Text]:
    """Yield the titles, the last line of each above the texts."""
    titles = [fold(fields[place].title, width) for place, width in zip(block, widths, strict=True)]
    if not any(map(any, titles)):
        return
    height = max(map(len, titles))
    shown = [fields[place] for place in block]
    for row in zip(*([""] * (height - len(title)) + title for title in titles), strict=True):
        yield _join(shown, [Text(text, "dim") for text in row], widths)


def _write_row(
    fields: Sequence[Field],
    texts: Sequence[Text],
    widths: Sequence[int],
    width: int,
    below: Sequence[Text],
    *,
    has_rest: bool,
) -> Iterator[Text]:
    texts, widths = list(texts), list(widths)
    if has_rest:
        room = width - sum(widths[:-1]) - GAP * (len(widths) - 1)
        if texts[-1].cell_len > room:
            below, texts[-1] = (texts[-1], *below), Text()
        widths[-1] = texts[-1].cell_len
    if not fields[0].is_number and texts[0].cell_len > widths[0]:
        name = texts[0].plain
        indent = name[: len(name) - len(name.lstrip(" "))]
        yield from (Text(indent + line, texts[0].style) for line in fold(name, width - len(indent)))
        texts[0] = Text()
    if any(texts):
        yield _join(fields, texts, widths)
    for text in below:
        yield from (Text(f"    {line}", text.style or "dim") for line in fold(text.plain, width - 4))


def _join(fields: Sequence[Field], texts: Sequence[Text], widths: Sequence[int]) -> Text:
    """Return a line of texts, numbers at the right of their columns."""
    cells = []
    for field, text, width in zip(fields, texts, widths, strict=True):
        cell = text.copy() if field.is_number else Text(_cut(text.plain, width), text.style)
        pad = cell.pad_left if field.is_number else cell.pad_right
        pad(max(width - cell.cell_len, 0))
        cells.append(cell)
    line = Text(" " * GAP).join(cells)
    line.rstrip()
    return line


def _cut(text: str, width: int) -> str:
    """Return both ends of a text, since the number of a name or a line is at the end; of a path, first its file."""
    if cell_len(text) <= width:
        return text
    text = text.rsplit("/", 1)[-1]
    if cell_len(text) <= width:
        return text
    kept = width - 1
    end = set_cell_size(text[::-1], kept - kept // 2)[::-1]
    return f"{set_cell_size(text, kept // 2)}…{end}"


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
