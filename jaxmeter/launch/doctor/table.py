"""The doctor's table: checks become its rows, and rows become text that needs neither colour nor a wide terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping

from jaxmeter.launch.host import Observation, ObservationState

INDENT = "  "
GAP = 2
WIDEST = 110
"""Longer lines are hard to read."""
NARROWEST_TEXT = 30
"""With less room next to the names, text goes below them."""


def run_check(name: str, check: Callable[[], Iterable[Observation]]) -> tuple[Observation, ...]:
    """What a check finds. One that raises is a row that says so: a broken machine is what it is for."""
    try:
        return tuple(check())
    except Exception as error:  # noqa: BLE001  whatever it was, the other rows are worth having
        return (describe_failure(name, error),)


def describe_failure(name: str, error: Exception) -> Observation:
    """The row of a check that raised."""
    return Observation(name, ObservationState.UNKNOWN, f"could not be checked ({type(error).__name__}: {error})")


def render(sections: Mapping[str, Iterable[Observation]], sentences: Iterable[str], width: int) -> str:
    """The table as text.

    Args:
      sections: Rows under their heading.
      sentences: What follows from them, below the table.
      width: Columns of the terminal.
    """
    shown = {heading: [_printable(row) for row in rows] for heading, rows in sections.items()}
    names = max((len(row.name) for rows in shown.values() for row in rows), default=0)
    width = min(width, WIDEST) - 1  # some terminals wrap a line that fills them
    lines = []
    for heading, rows in shown.items():
        lines += [heading, *(line for row in rows for line in _row(row, names, width)), ""]
    for sentence in sentences:
        lines += _wrapped(printable(sentence), "", INDENT, width)
    return "\n".join(lines)


def printable(text: str) -> str:
    """Text in one line without control characters, which could move the cursor or rewrite what was shown before."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))


def _printable(row: Observation) -> Observation:
    return Observation(printable(row.name), row.state, printable(row.finding), printable(row.remedy))


def _row(row: Observation, names: int, width: int) -> list[str]:
    states = max(map(len, ObservationState))
    start = f"{INDENT}{row.state:{states + GAP}}{row.name:{names + GAP}}"
    if width - len(start) >= NARROWEST_TEXT:
        first, later = start, " " * len(start)
    else:
        first = later = INDENT * 3
    lines = _wrapped(row.finding, first, later, width)
    if row.remedy:
        lines += _wrapped(row.remedy, f"{later}-> ", f"{later}   ", width)
    return lines if first == start else [start.rstrip(), *lines]


def _wrapped(text: str, first: str, later: str, width: int) -> list[str]:
    # Commands and addresses stay in one piece, to be copied.
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=later,
        break_long_words=False,
        break_on_hyphens=False,
    )
