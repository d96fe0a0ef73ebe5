"""The view's first screen in a terminal: at most 100 columns and 40 lines, plain where the output is no terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from .console import WIDEST, print_lines
from .text import shorten
from .view import Page
from .view.page_model import Cell, Item, Table, Tone

ITEMS_AT_MOST = 5
ROWS_AT_MOST = 9
NARROWEST_COLUMN = 22
TOLD_SECTIONS = ("published",)
"""Sections whose answer is told here, too."""

_STYLES = {Tone.PLAIN: "", Tone.MUTED: "dim", Tone.GOOD: "green", Tone.WARN: "yellow", Tone.BAD: "red"}


def show(page: Page, console: Console) -> None:
    """Prints the summary."""
    print_lines(_write_summary(page, min(console.width, WIDEST)), console)


def _write_summary(page: Page, width: int) -> Iterator[Text | Grid]:
    yield Text(page.finding, "bold")
    yield Text(" ".join(page.summary))
    yield from _write_items("Needs attention", page.attention)
    yield from _write_items("Data warnings", page.warnings)
    yield from (Text(section.answer) for section in page.sections if section.id in TOLD_SECTIONS)
    if page.matrix is not None:
        yield from _write_matrix(page.matrix, width)


def _write_items(title: str, items: Sequence[Item]) -> Iterator[Text]:
    if not items:
        return
    yield Text(f"{title} ({len(items)})", "bold")
    for item in items[:ITEMS_AT_MOST]:
        yield Text(f"  {item.label} ", _STYLES[item.tone], no_wrap=True).append(item.text, "default")
    if len(items) > ITEMS_AT_MOST:
        yield Text(f"  + {len(items) - ITEMS_AT_MOST} more, in the report")


def _write_matrix(table: Table, width: int) -> Iterator[Text | Grid]:
    """As many columns as fit at a readable width; the first holds the suites, the last is the newest run."""
    places = max(1, (width - NARROWEST_COLUMN) // NARROWEST_COLUMN)
    shown = [0, *range(max(1, len(table.columns) - places), len(table.columns))]
    grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_edge=False)
    for index in shown:
        grid.add_column(Text(table.columns[index].title), no_wrap=True, overflow="ellipsis")
    for row in table.rows[:ROWS_AT_MOST]:
        grid.add_row(*(_write_cell(row.cells[index]) for index in shown))
    yield Text(table.caption, "dim")
    yield grid
    hidden = [
        f"{len(table.columns) - len(shown)} runs" if len(table.columns) > len(shown) else "",
        f"{len(table.rows) - ROWS_AT_MOST} suites" if len(table.rows) > ROWS_AT_MOST else "",
    ]
    if any(hidden):
        yield Text(f"+ {' and '.join(filter(None, hidden))} more, in the report", "dim")


def _write_cell(cell: Cell) -> Text:
    flag = " !" if cell.tone is Tone.WARN else ""
    return Text(shorten(cell.text, 60) + flag, _STYLES[cell.tone])
