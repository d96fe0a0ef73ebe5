"""What every text for a terminal shares: its width, and likenesses where an output takes ASCII only."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

WIDEST = 100
"""Columns, however wide the terminal is."""

_LIKENESSES = str.maketrans(
    {"µ": "u", "×": "x", "—": "-", "−": "-", "–": "-", "±": "+-", "·": "|", "…": "~", "\u202f": " ", "→": "->"}
    | {"●": "o", "■": "#", "◆": "*"}
)


def open_console() -> Console:
    """Stdout. Rich takes 80 columns where there is no terminal; a log has room for all."""
    return Console(width=None if sys.stdout.isatty() else WIDEST)


def print_lines(lines: Iterable[Text | Table], console: Console) -> None:
    """Prints lines and tables, none wider than WIDEST; a line that must not wrap is cut."""
    width = min(console.width, WIDEST)
    plain = not console.encoding.lower().startswith("utf")
    for line in lines:
        if isinstance(line, Text) and line.no_wrap:
            line.truncate(width, overflow="ellipsis")
        for text in _as_ascii(line, width) if plain else [line]:
            console.print(text, width=width, soft_wrap=False, markup=False, highlight=False, emoji=False)


def _as_ascii(line: Text | Table, width: int) -> list[Text]:
    buffer = Console(file=io.StringIO(), width=width, color_system=None, legacy_windows=False)
    with buffer.capture() as capture:
        buffer.print(line, width=width)
    return [Text(to_ascii(text)) for text in capture.get().splitlines()]


def to_ascii(text: str) -> str:
    """The nearest ASCII text: signs have a likeness, the rest is a `?`."""
    return text.translate(_LIKENESSES).encode("ascii", "replace").decode()
