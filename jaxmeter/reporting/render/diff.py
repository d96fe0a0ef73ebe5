"""Writes compared programs for a terminal: verdicts first, then what may explain them, then tables; 100 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from jaxmeter.reporting import numbers
from jaxmeter.reporting.compare.program_diff import (
    CountChanges,
    Difference,
    Fusion,
    MemoryChange,
    ProgramDiff,
    find_changed_code,
)
from jaxmeter.reporting.render.console import WIDEST, print_lines
from jaxmeter.reporting.text import visible

ROWS_AT_MOST = 20
"""Of one table: more are counted, since a program of thousands of fusions would hide what comes after."""

_MEMORY_NAMES = {
    "planned_peak_bytes": "peak",
    "argument_bytes": "arguments",
    "output_bytes": "outputs",
    "temp_bytes": "temporaries",
    "alias_bytes": "aliased",
}


@dataclass(frozen=True)
class Sheet:
    """All that is shown: the runs' names, their programs, what differs around these, and the user's own packages."""

    a: str
    b: str
    diffs: tuple[ProgramDiff, ...]
    surroundings: tuple[Difference, ...]
    packages: str = ""


def show(sheet: Sheet, console: Console) -> None:
    """Prints the sheet."""
    print_lines(_write_sheet(sheet), console)


def _write_sheet(sheet: Sheet) -> Iterator[Text | Grid]:
    yield _make_text(f"A: {sheet.a} · B: {sheet.b}", "dim")
    cases = {diff.pair.case for diff in sheet.diffs}
    if len(cases) == 1:
        yield _make_text(sheet.diffs[0].pair.case, "bold")
    for diff in sheet.diffs:
        yield from _write_verdict(diff, _name_pair(diff, cases))
    yield from _write_explanations(sheet)
    for diff in sheet.diffs:
        details = list(_write_details(diff))
        if details:
            yield Text()
            if len(sheet.diffs) > 1:
                yield _make_text(_name_pair(diff, cases), "bold")
            yield from details


def _name_pair(diff: ProgramDiff, cases: set[str]) -> str:
    return diff.pair.variant if len(cases) == 1 else f"{diff.pair.case} · {diff.pair.variant}"


def _write_verdict(diff: ProgramDiff, name: str) -> Iterator[Text]:
    """The verdict behind the variant's name; on lines of its own, each part of it, where it is long."""
    style = "green" if diff.same else "yellow"
    whole = f"{name}: {diff.verdict}"
    if len(visible(whole)) <= WIDEST:
        yield _make_text(whole, style)
    else:
        yield _make_text(f"{name}:", style)
        yield from (_make_text(f"  {part}", style) for part in diff.verdict.split("; "))
    yield from (_make_text(f"  note: {note}") for note in diff.notes)


def _write_explanations(sheet: Sheet) -> Iterator[Text]:
    code = dict.fromkeys(line for diff in sheet.diffs for line in find_changed_code(diff.pair))
    around = [_write_change(one) for one in sheet.surroundings]
    lines = [f"  {line}" for line in (*code, sheet.packages) if line]
    yield from _write_list("What may explain a difference", [*lines, *around])


def _write_details(diff: ProgramDiff) -> Iterator[Text | Grid]:
    for changes in diff.counts:
        yield from _write_counts(changes)
    yield from _write_fusions("Fusions only in A", diff.gone)
    yield from _write_fusions("Fusions only in B", diff.new)
    yield from _write_list("Layouts that changed", [_write_change(one) for one in diff.layouts])
    yield from _write_memory(diff.memory)
    for changes in diff.calls:
        yield from _write_counts(changes)


def _write_counts(changes: CountChanges) -> Iterator[Text | Grid]:
    if not changes.rows:
        return
    rows = [(name, numbers.count(a), numbers.count(b), numbers.signed_count(b - a)) for name, a, b in changes.rows]
    more = [f"+ {len(rows) - ROWS_AT_MOST} more"] if len(rows) > ROWS_AT_MOST else []
    unchanged = [f"{changes.unchanged} unchanged"] if changes.unchanged else []
    yield _make_grid(f"{changes.title[0].upper()}{changes.title[1:]}", rows[:ROWS_AT_MOST])
    if more or unchanged:
        yield _make_text(f"  {', '.join([*more, *unchanged])}", "dim")


def _write_memory(changes: Sequence[MemoryChange]) -> Iterator[Grid]:
    if not changes:
        return
    rows = []
    for metric, a, b in changes:
        scaling = f"{'+' if b > a else ''}{numbers.memory(b - a)}"
        rows.append((_MEMORY_NAMES[metric], *numbers.memory_sides(a, b), scaling))
    yield _make_grid("Planned peak memory", rows)


def _make_grid(title: str, rows: Sequence[tuple[str, str, str, str]]) -> Grid:
    grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_edge=False)
    grid.add_column(_make_text(title, "bold"), no_wrap=True, overflow="ellipsis", min_width=30)
    for heading in ("A", "B", "difference"):
        grid.add_column(heading, justify="right", no_wrap=True)
    for name, *values in rows:
        grid.add_row(_make_text(f"  {name}"), *values)
    return grid


def _write_fusions(title: str, fusions: Sequence[Fusion]) -> Iterator[Text]:
    lines = []
    for fusion in fusions:
        times = f"{numbers.count(fusion.count)} × " if fusion.count > 1 else ""
        origin = " · ".join(filter(None, [_shorten_source(fusion.source), fusion.operation]))
        lines.append(f"  {times}{fusion.kind} {fusion.shape}: {fusion.fuses}" + (f"\n      {origin}" if origin else ""))
    yield from _write_list(title, lines, cut=True)


def _write_list(title: str, lines: Sequence[str], *, cut: bool = False) -> Iterator[Text]:
    """A heading with their number, and the lines; a part after a line break is a line of its own, `cut` or wrapped."""
    if not lines:
        return
    yield _make_text(f"{title} ({numbers.count(len(lines))})", "bold")
    for line in lines[:ROWS_AT_MOST]:
        yield from (_make_text(part, "dim" if place else "", cut=cut) for place, part in enumerate(line.split("\n")))
    if len(lines) > ROWS_AT_MOST:
        yield _make_text(f"  + {numbers.count(len(lines) - ROWS_AT_MOST)} more", "dim")


def _shorten_source(source: str | None) -> str | None:
    """The file with its folder, and the line: what stands before may name a person, and fills the line."""
    return None if source is None else "/".join(source.split("/")[-2:])


def _write_change(one: Difference) -> str:
    """`  what: A → B`, or both sides below each other where they are long, since what differs may be at their ends."""
    a, b = (numbers.MISSING if value is None else visible(value) for value in (one.a, one.b))
    line = f"  {visible(one.what)}: {a} → {b}"
    return line if len(line) <= WIDEST else f"  {visible(one.what)}\n      A {a}\n      B {b}"


def _make_text(text: str, style: str = "", *, cut: bool = False) -> Text:
    return Text(visible(text), style, no_wrap=cut)
