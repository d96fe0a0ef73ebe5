"""The view's first screen in a terminal: at most 100 columns and 40 lines, plain where the output is no terminal."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from .text import shorten
from .view import Page
from .view.page_model import Cell, Item, Table, Tone

WIDEST = 100
ITEMS_AT_MOST = 5
ROWS_AT_MOST = 9
NARROWEST_COLUMN = 22
TOLD_SECTIONS = ("published",)
"""Sections whose answer is told here, too."""

_STYLES = {Tone.PLAIN: "", Tone.MUTED: "dim", Tone.GOOD: "green", Tone.WARN: "yellow", Tone.BAD: "red"}

_ASCII = str.maketrans({"µ": "u", "×": "x", "—": "-", "−": "-", "–": "-", "±": "+-", "·": "|", "…": "~", "\u202f": " "})
_SIGNS = str.maketrans({"●": "o", "■": "#", "▲": "^", "◆": "*"})


def show(page: Page, console: Console) -> None:
    """Prints the summary."""
    width = min(console.width, WIDEST)
    plain = not console.encoding.lower().startswith("utf")
    lines: list[Text | Grid] = [Text(page.finding, "bold"), Text(" ".join(page.verdict))]
    lines += _items("Needs attention", page.attention, width)
    lines += _items("Data warnings", page.warnings, width)
    lines += [Text(section.answer) for section in page.sections if section.id in TOLD_SECTIONS]
    if page.matrix is not None:
        lines += _matrix(page.matrix, width)
    for line in lines:
        for text in _as_ascii(line, width) if plain else [line]:
            console.print(text, width=width, soft_wrap=False, markup=False, highlight=False, emoji=False)


def _items(title: str, items: Sequence[Item], width: int) -> Iterable[Text]:
    if not items:
        return
    yield Text(f"{title} ({len(items)})", "bold")
    for item in items[:ITEMS_AT_MOST]:
        text = Text(f"  {item.label} ", _STYLES[item.tone])
        text.append(item.text, "default")
        text.truncate(width, overflow="ellipsis")
        yield text
    if len(items) > ITEMS_AT_MOST:
        yield Text(f"  + {len(items) - ITEMS_AT_MOST} more, in the report")


def _matrix(table: Table, width: int) -> Iterable[Text | Grid]:
    """As many columns as fit at a readable width; the first holds the suites, the last is the newest run."""
    places = max(1, (width - NARROWEST_COLUMN) // NARROWEST_COLUMN)
    shown = [0, *range(max(1, len(table.columns) - places), len(table.columns))]
    grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_edge=False)
    for index in shown:
        grid.add_column(Text(table.columns[index].title), no_wrap=True, overflow="ellipsis")
    for row in table.rows[:ROWS_AT_MOST]:
        grid.add_row(*(_cell(row.cells[index]) for index in shown))
    yield grid
    hidden = [
        f"{len(table.columns) - len(shown)} runs" if len(table.columns) > len(shown) else "",
        f"{len(table.rows) - ROWS_AT_MOST} suites" if len(table.rows) > ROWS_AT_MOST else "",
    ]
    if any(hidden):
        yield Text(f"+ {' and '.join(filter(None, hidden))} more, in the report", "dim")


def _cell(cell: Cell) -> Text:
    flag = " !" if cell.tone is Tone.WARN else ""
    return Text(shorten(cell.text, 60) + flag, _STYLES[cell.tone])


def _as_ascii(line: Text | Grid, width: int) -> Iterable[Text]:
    """The line's own text where the output cannot take more than ASCII: signs have a likeness, the rest a `?`."""
    buffer = Console(file=io.StringIO(), width=width, color_system=None, legacy_windows=False)
    with buffer.capture() as capture:
        buffer.print(line, width=width)
    return [Text(to_ascii(text)) for text in capture.get().splitlines()]


def to_ascii(text: str) -> str:
    """The nearest ASCII text."""
    return text.translate(_ASCII).translate(_SIGNS).encode("ascii", "replace").decode()
