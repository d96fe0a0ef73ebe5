"""A page as text: all that its renderers are given, one line for each row, item and point."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass

from jaxmeter.reporting.view.page_model import (
    AnswerLine,
    Cell,
    Column,
    DotsMark,
    End,
    IntervalMark,
    Item,
    Point,
    Result,
    Row,
    StackMark,
    Table,
    Tone,
    Value,
)

QUIET = (Tone.PLAIN, Tone.MUTED)
LONG = 60
"""Characters of a text that is written once."""


def write_text(value: object) -> str:
    """Return a part of a page with its names, numbers, tones and marks; what is empty is left out."""
    return "\n".join(Writer().write(value))


def write_row(row: Row) -> str:
    """Return a row in one line, and what unfolds from it below."""
    return "\n".join(Writer().write(row))


@dataclass
class Writer:
    """Writes a page; of long texts that stand in several places, only the first is whole."""

    seen: set[str] = field(default_factory=set)

    def write(self, value: object) -> Iterator[str]:
        """Yield the lines of a part."""
        match value:
            case Table():
                yield from self._write_table(value)
            case Row():
                yield " | ".join(map(_write_cell, value.cells))
                for cell in value.cells:
                    yield from (f"    {cell.fold_title or '>'} {line}" for line in cell.fold.split("\n") if cell.fold)
            case Point():
                bounds = "" if value.bounds is None else f" [{value.bounds[0]:.4g}, {value.bounds[1]:.4g}]"
                yield f"{value.x:g}: {value.y:.4g}{bounds}{' doubtful' if value.doubtful else ''}"
            case End():
                bounds = "" if value.bounds is None else f" [{value.bounds[0]:.4g}, {value.bounds[1]:.4g}]"
                yield f"{value.mode} {value.time_s:.4g}{bounds}"
            case Item():
                yield _join(value.label and f"{value.label}:", value.text, _write_tone(value.tone), value.target)
            case AnswerLine():
                yield _join(f"{value.suite}: {value.question}", value.of and f"({value.of})", value.target)
                yield _join(f"  {value.text}", _write_tone(value.tone), f"rank {value.rank:g}")
            case Result():
                values = (value.time, value.speedup, value.first, value.memory)
                yield _join(value.variant, value.where, value.run, value.status, _write_tone(value.tone), value.change)
                yield f"  {' | '.join(map(_write_value, values))} {value.memory_of}".rstrip()
            case tuple():
                for element in value:
                    first, *others = list(self.write(element)) or [""]
                    yield f"- {first}"
                    yield from (f"  {line}" for line in others)
            case float():
                yield f"{value:.4g}"
            case _ if is_dataclass(value):
                for each in fields(value):
                    yield from self._write_field(each.name, getattr(value, each.name))
            case _:
                yield from self._once(str(value)).split("\n")

    def _write_field(self, name: str, value: object) -> Iterator[str]:
        if value is None or value in ("", (), False):
            return
        lines = list(self.write(value))
        if isinstance(value, str | float | bool):
            yield from (f"{name}: {lines[0]}", *lines[1:])
        else:
            yield f"{name}:"
            yield from (f"  {line}" for line in lines)

    def _write_table(self, table: Table) -> Iterator[str]:
        yield _join(table.fold and f"[{table.fold}]", self._once(table.caption))
        yield _join(
            " | ".join(map(_write_column, table.columns)), table.stack and f"; stacked: {', '.join(table.stack)}"
        )
        for group in table.groups:
            yield from [" · ".join(filter(None, (group.title, group.detail)))] if group.title else []
            for row in group.rows:
                yield from (f"  {line}" for line in self.write(row))

    def _once(self, text: str) -> str:
        if len(text) <= LONG or text not in self.seen:
            self.seen.add(text)
            return text
        return f"{text[:LONG]} …"


def _join(*texts: str) -> str:
    return " ".join(filter(None, texts))


def _write_tone(tone: Tone) -> str:
    return "" if tone in QUIET else f"({tone.value})"


def _write_column(column: Column) -> str:
    return _join(column.title, column.detail and f"({column.detail})")


def _write_cell(cell: Cell) -> str:
    return _join(cell.text, cell.detail and f"· {cell.detail}", _write_tone(cell.tone), _write_mark(cell.mark))


def _write_value(value: Value) -> str:
    known = [f"{number:.4g}" for number in (value.low, value.value, value.high) if number is not None]
    return _join(value.text, _write_tone(value.tone), known and f"<{' '.join(known)}>")


def _write_mark(mark: object) -> str:
    if isinstance(mark, IntervalMark):
        origin = "" if mark.origin is None else f" from {mark.origin:.3f}"
        return f"<{mark.low:.3f} {mark.point:.3f} {mark.high:.3f}{origin}>"
    shares = mark.shares if isinstance(mark, StackMark) else mark.dots if isinstance(mark, DotsMark) else ()
    return f"<{' '.join(f'{share:.3f}' for share in shares)}>" if shares else ""
