"""A page as text: all that its renderers are given, one line for each row, item and mark."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass

from jaxmeter.document.model import Cell, Column, Item, Row, Table, Tone
from jaxmeter.reporting.view import page_model as drawn
from jaxmeter.reporting.view.page_model import AnswerLine, Card, DeviceLine, Phrase, TrustFact, Value, VariantResult

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
            case Item():
                yield _join(value.label and f"{value.label}:", value.text, _write_tone(value.tone), value.target)
            case AnswerLine():
                yield _join(f"{value.suite}: {value.question}", value.of and f"({value.of})", value.target)
                yield _join(f"  {value.text}", _write_tone(value.tone), f"rank {value.rank:g}")
            case VariantResult():
                values = (value.time, value.speedup, value.first, value.memory)
                yield _join(value.variant, value.where, value.run, value.status, _write_tone(value.tone), value.change)
                yield _join(f"  {' | '.join(map(_write_value, values))}", value.memory_of, value.doubt)
            case Card():
                yield from self._write_card(value)
            case Phrase():
                yield _write_phrase(value)
            case DeviceLine():
                yield _join(f"{value.hue}:", f"{value.name};", value.detail)
            case TrustFact():
                yield _join(f"{value.name}:", " | ".join(map(_write_phrase, value.values)), value.target)
            case tuple():
                for element in value:
                    first, *others = list(self.write(element)) or [""]
                    yield f"- {first}"
                    yield from (f"  {line}" for line in others)
            case float():
                yield f"{value:.4g}"
            case _ if (text := _write_mark(value)) is not None:
                yield text
            case _ if is_dataclass(value):
                for each in fields(value):
                    yield from self._write_field(each.name, getattr(value, each.name))
            case _:
                yield from self._once(str(value)).split("\n")

    def _write_field(self, name: str, value: object) -> Iterator[str]:
        if value is None or value in ("", False) or (isinstance(value, tuple) and not any(value)):
            return
        lines = list(self.write(value))
        if len(lines) == 1 and not isinstance(value, tuple):
            yield f"{name}: {lines[0]}"
        elif isinstance(value, str | float | bool):
            yield from (f"{name}: {lines[0]}", *lines[1:])
        else:
            yield f"{name}:"
            yield from (f"  {line}" for line in lines)

    def _write_card(self, card: Card) -> Iterator[str]:
        rank = "" if card.rank == float("inf") else f"rank {card.rank:g}"
        yield _join(f"{card.id}: {card.question}", "" if card.is_asked else "(not asked)", card.target, rank)
        for phrase in card.phrases:
            yield from (f"  {line}" for line in self.write(phrase))
        for name, figure in (("", card.figure), *card.others):
            if figure is not None:
                yield f"  {_join(type(figure).__name__, name and f'by {name}')}"
                yield from (f"    {line}" for line in self.write(figure))

    def _write_table(self, table: Table) -> Iterator[str]:
        yield _join(table.fold and f"[{table.fold}]", self._once(table.caption))
        yield " | ".join(map(_write_column, table.columns))
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
    shade = _join(cell.shade, cell.hint)
    return _join(cell.text, cell.detail and f"· {cell.detail}", _write_tone(cell.tone), shade and f"<{shade}>")


def _write_value(value: Value) -> str:
    return _join(value.text, _write_tone(value.tone), _write_numbers(value.low, value.value, value.high))


def _write_phrase(phrase: Phrase) -> str:
    return _join(phrase.hue and f"{phrase.hue}:", phrase.text, _write_tone(phrase.tone), phrase.doubt)


def _write_numbers(*numbers: float | None) -> str:
    known = [f"{number:.4g}" for number in numbers if number is not None]
    return f"<{' '.join(known)}>" if known else ""


def _write_mark(value: object) -> str | None:
    """What is drawn of a mark, a part, an axis or a limit, in one line; None of anything else."""
    match value:
        case drawn.Mark(estimate=estimate):
            return _join(
                value.says,
                _write_numbers(estimate.low, estimate.value, estimate.high),
                "hollow" if estimate.is_doubtful else "",
                "reference" if value.is_reference else "",
                value.hue,
                estimate.dots and f"dots {' '.join(f'{dot:.4g}' for dot in estimate.dots)}",
            )
        case drawn.StackPart():
            return _join(f"{value.fill}:", value.says, f"<{value.amount:.4g}>")
        case drawn.Axis():
            names = value.names and f"({', '.join(value.names)})"
            return _join(f"{value.title} in {value.unit}", "logarithmic" if value.is_log else "", names or "")
        case drawn.Limit() | drawn.Roof():
            numbers = (value.value,) if isinstance(value, drawn.Limit) else (value.bandwidth, value.peak)
            return _join(value.text, _write_numbers(*numbers))
        case drawn.CurvePoint():
            return _join(f"{value.x:g}:", _write_mark(value.mark))
        case drawn.Dot():
            return _join(f"{value.x:.4g} {value.name}:", _write_mark(value.mark))
    return None
