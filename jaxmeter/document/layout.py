"""Texts and tables in the columns of a terminal. No number is cut, and no name of a row."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.text import Text

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
