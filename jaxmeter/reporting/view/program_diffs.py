"""Compared programs as a document: verdicts first, then what may explain them, then tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxmeter.document import numbers
from jaxmeter.document.model import Column, Document, Item, Part, Tone, limit, make_table
from jaxmeter.harness.record.wording import shorten

from ..compare.program_diff import CountChanges, Difference, Fusion, MemoryChange, ProgramDiff, find_changed_code
from ..text import shorten_source

ROWS_AT_MOST = 20
"""Of one table: more are counted, since a program of thousands of fusions would hide what comes after."""

LONGEST_CHANGE, LONGEST_FUSION = 98, 60
"""Characters of both sides of a fact in one sentence, and of what a fusion fuses."""

_MEMORY_NAMES = {
    "planned_peak_bytes": "peak",
    "argument_bytes": "arguments",
    "output_bytes": "outputs",
    "temp_bytes": "temporaries",
    "alias_bytes": "aliased",
}


def describe_diffs(
    runs: tuple[str, str], diffs: Sequence[ProgramDiff], surroundings: Sequence[Difference], packages: str = ""
) -> Document:
    """Return what differs between the programs of two runs.

    Args:
      runs: Their names.
      surroundings: What differs around the programs.
      packages: What differs in the user's own packages.
    """
    cases = list(dict.fromkeys(diff.pair.case for diff in diffs))
    verdicts = [Item(cases[0])] if len(cases) == 1 else []
    names = [diff.pair.variant if len(cases) == 1 else f"{diff.pair.case} · {diff.pair.variant}" for diff in diffs]
    for name, diff in zip(names, diffs, strict=True):
        verdicts.append(Item(f"{name}: {diff.verdict}", tone=Tone.GOOD if diff.same else Tone.WARN))
        verdicts += [Item(f"note: {note}") for note in diff.notes]
    code = dict.fromkeys(line for diff in diffs for line in find_changed_code(diff.pair))
    facts = [Item(line) for line in (*code, packages) if line]
    facts += [item for fact in surroundings for item in _write_change(fact)]
    parts = [Part(items=tuple(verdicts)), *_list("What may explain a difference", facts)]
    for name, diff in zip(names, diffs, strict=True):
        details = list(_list_details(diff))
        if details and len(diffs) > 1:
            parts.append(Part(name))
        parts += details
    return Document(f"A: {runs[0]} · B: {runs[1]}", tuple(parts))


def _list_details(diff: ProgramDiff) -> Iterator[Part]:
    for changes in diff.counts:
        yield from _show_counts(changes)
    yield from _list("Fusions only in A", [_write_fusion(fusion) for fusion in diff.gone])
    yield from _list("Fusions only in B", [_write_fusion(fusion) for fusion in diff.new])
    yield from _list(
        "Layouts that changed", [item for difference in diff.layouts for item in _write_change(difference)]
    )
    yield from _show_memory(diff.memory)
    for changes in diff.calls:
        yield from _show_counts(changes)


def _show_counts(changes: CountChanges) -> Iterator[Part]:
    if not changes.rows:
        return
    rows = [(name, numbers.count(a), numbers.count(b), numbers.signed_count(b - a)) for name, a, b in changes.rows]
    more = [f"+ {len(rows) - ROWS_AT_MOST} more"] if len(rows) > ROWS_AT_MOST else []
    unchanged = [f"{changes.unchanged} unchanged"] if changes.unchanged else []
    title = f"{changes.title[0].upper()}{changes.title[1:]}"
    yield from _show_sides(title, rows[:ROWS_AT_MOST], ", ".join([*more, *unchanged]))


def _show_memory(changes: Sequence[MemoryChange]) -> Iterator[Part]:
    rows = [
        (
            _MEMORY_NAMES[metric],
            *numbers.memory_sides(a, b),
            f"{'+' if b > a else ''}{numbers.memory(b - a)}",
        )
        for metric, a, b in changes
    ]
    if rows:
        yield from _show_sides("Planned peak memory", rows)


def _show_sides(title: str, rows: Sequence[tuple[str, str, str, str]], note: str = "") -> Iterator[Part]:
    sides = (Column(heading, numeric=True) for heading in ("A", "B", "difference"))
    yield Part(tables=(make_table((title, *sides), rows),), notes=(note,) if note else ())


def _write_fusion(fusion: Fusion) -> Item:
    times = f"{numbers.count(fusion.count)} × " if fusion.count > 1 else ""
    origin = " · ".join(filter(None, [shorten_source(fusion.source), fusion.operation]))
    what = f"{times}{fusion.kind} {fusion.shape}: {shorten(fusion.fuses, LONGEST_FUSION)}"
    return Item("; ".join(filter(None, (what, origin))))


def _list(title: str, items: Sequence[Item]) -> Iterator[Part]:
    """Yield a list below a heading with its length."""
    if items:
        yield Part(f"{title} ({numbers.count(len(items))})", items=limit(items, ROWS_AT_MOST))


def _write_change(difference: Difference) -> Iterator[Item]:
    """`what: A → B`; a sentence a side where they are long, since what differs may be at their ends."""
    a, b = (numbers.MISSING if value is None else value for value in (difference.a, difference.b))
    whole = f"{difference.what}: {a} → {b}"
    if len(whole) <= LONGEST_CHANGE:
        yield Item(whole)
    else:
        yield Item(f"{difference.what} of A: {a}")
        yield Item(f"{difference.what} of B: {b}")
