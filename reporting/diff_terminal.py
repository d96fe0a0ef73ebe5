"""Writes compared programs for a terminal: verdicts first, then what may explain them, then tables; 100 columns."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from harness.record import Number

from . import numbers
from .program_diff import Counted, Difference, Fusion, ProgramDiff, changed_code, signed
from .terminal import WIDEST, to_ascii
from .text import visible

ROWS_AT_MOST = 20
"""Of one table: more are counted, since a program of thousands of fusions would hide what comes after."""

_MEMORY_NAMES = {
    "peak_bytes": "peak",
    "argument_bytes": "arguments",
    "output_bytes": "outputs",
    "temp_bytes": "temporaries",
    "alias_bytes": "aliased",
}


@dataclass(frozen=True)
class Sheet:
    """All that is shown: the runs' names, their programs, and what differs around these."""

    a: str
    b: str
    diffs: tuple[ProgramDiff, ...]
    surroundings: tuple[Difference, ...]


def show(sheet: Sheet, console: Console) -> None:
    """Prints the sheet."""
    width = min(console.width, WIDEST)
    plain = not console.encoding.lower().startswith("utf")
    for line in _lines(sheet):
        if isinstance(line, Text) and line.no_wrap:
            line.truncate(width, overflow="ellipsis")
        for text in _as_ascii(line, width) if plain else [line]:
            console.print(text, width=width, soft_wrap=False, markup=False, highlight=False, emoji=False)


def _lines(sheet: Sheet) -> Iterator[Text | Grid]:
    yield _text(f"A: {sheet.a} · B: {sheet.b}", "dim")
    cases = {diff.pair.case for diff in sheet.diffs}
    if len(cases) == 1:
        yield _text(sheet.diffs[0].pair.case, "bold")
    for diff in sheet.diffs:
        yield from _verdict(diff, _name(diff, cases))
    yield from _explanations(sheet)
    for diff in sheet.diffs:
        details = list(_details(diff))
        if details:
            yield Text()
            if len(sheet.diffs) > 1:
                yield _text(_name(diff, cases), "bold")
            yield from details


def _name(diff: ProgramDiff, cases: set[str]) -> str:
    return diff.pair.variant if len(cases) == 1 else f"{diff.pair.case} · {diff.pair.variant}"


def _verdict(diff: ProgramDiff, name: str) -> Iterator[Text]:
    """The verdict behind the variant's name; on lines of its own, each part of it, where it is long."""
    style = "green" if diff.same else "yellow"
    whole = f"{name}: {diff.verdict}"
    if len(visible(whole)) <= WIDEST:
        yield _text(whole, style)
    else:
        yield _text(f"{name}:", style)
        yield from (_text(f"  {part}", style) for part in diff.verdict.split("; "))
    yield from (_text(f"  note: {note}") for note in diff.notes)


def _explanations(sheet: Sheet) -> Iterator[Text]:
    code = dict.fromkeys(line for diff in sheet.diffs for line in changed_code(diff.pair))
    around = [_change(one) for one in sheet.surroundings]
    yield from _listed("What may explain a difference", [*(f"  {line}" for line in code), *around])


def _details(diff: ProgramDiff) -> Iterator[Text | Grid]:
    for counted in diff.counts:
        yield from _counts(counted)
    yield from _fusions("Fusions only in A", diff.gone)
    yield from _fusions("Fusions only in B", diff.new)
    yield from _listed("Layouts that changed", [_change(one) for one in diff.layouts])
    yield from _memory(diff.memory)
    for counted in diff.calls:
        yield from _counts(counted)


def _counts(counted: Counted) -> Iterator[Text | Grid]:
    if not counted.rows:
        return
    rows = [(name, numbers.count(a), numbers.count(b), signed(b - a)) for name, a, b in counted.rows]
    more = [f"+ {len(rows) - ROWS_AT_MOST} more"] if len(rows) > ROWS_AT_MOST else []
    unchanged = [f"{counted.unchanged} unchanged"] if counted.unchanged else []
    yield _grid(f"{counted.title[0].upper()}{counted.title[1:]}", rows[:ROWS_AT_MOST])
    if more or unchanged:
        yield _text(f"  {', '.join([*more, *unchanged])}", "dim")


def _memory(rows: Sequence[tuple[str, Number | None, Number | None]]) -> Iterator[Grid]:
    if rows:
        shown = [(_MEMORY_NAMES[name], numbers.memory(a), numbers.memory(b), _growth(a, b)) for name, a, b in rows]
        yield _grid("Planned memory", shown)


def _growth(a: Number | None, b: Number | None) -> str:
    if a is None or b is None:
        return numbers.MISSING
    return f"{'+' if b > a else ''}{numbers.memory(b - a)}"


def _grid(title: str, rows: Sequence[tuple[str, str, str, str]]) -> Grid:
    grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_edge=False)
    grid.add_column(_text(title, "bold"), no_wrap=True, overflow="ellipsis", min_width=30)
    for heading in ("A", "B", "difference"):
        grid.add_column(heading, justify="right", no_wrap=True)
    for name, *values in rows:
        grid.add_row(_text(f"  {name}"), *values)
    return grid


def _fusions(title: str, fusions: Sequence[Fusion]) -> Iterator[Text]:
    lines = []
    for fusion in fusions:
        times = f"{numbers.count(fusion.count)} × " if fusion.count > 1 else ""
        origin = " · ".join(filter(None, [_place(fusion.source), fusion.operation]))
        lines.append(f"  {times}{fusion.kind} {fusion.shape}: {fusion.fuses}" + (f"\n      {origin}" if origin else ""))
    yield from _listed(title, lines, cut=True)


def _listed(title: str, lines: Sequence[str], *, cut: bool = False) -> Iterator[Text]:
    """A heading with their number, and the lines; a part after a line break is a line of its own, `cut` or wrapped."""
    if not lines:
        return
    yield _text(f"{title} ({numbers.count(len(lines))})", "bold")
    for line in lines[:ROWS_AT_MOST]:
        yield from (_text(part, "dim" if place else "", cut=cut) for place, part in enumerate(line.split("\n")))
    if len(lines) > ROWS_AT_MOST:
        yield _text(f"  + {numbers.count(len(lines) - ROWS_AT_MOST)} more", "dim")


def _place(source: str | None) -> str | None:
    """The file with its folder, and the line: what stands before may name a person, and fills the line."""
    return None if source is None else "/".join(source.split("/")[-2:])


def _change(one: Difference) -> str:
    """`  what: A → B`, or both sides below each other where they are long, since what differs may be at their ends."""
    a, b = (numbers.MISSING if value is None else visible(value) for value in (one.a, one.b))
    line = f"  {visible(one.what)}: {a} → {b}"
    return line if len(line) <= WIDEST else f"  {visible(one.what)}\n      A {a}\n      B {b}"


def _text(text: str, style: str = "", *, cut: bool = False) -> Text:
    return Text(visible(text), style, no_wrap=cut)


def _as_ascii(line: Text | Grid, width: int) -> list[Text]:
    buffer = Console(file=io.StringIO(), width=width, color_system=None, legacy_windows=False)
    with buffer.capture() as capture:
        buffer.print(line, width=width)
    return [Text(to_ascii(text.replace("→", "->"))) for text in capture.get().splitlines()]
