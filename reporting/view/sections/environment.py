"""Environment: what differs between the runs up front, everything in a fold."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from .. import numbers
from ..text import one_of
from .measured import Place
from .parts import Cell, Column, Group, Part, Row, Section, Table, Tone

QUESTION = "Where and how was it made?"
ALWAYS_DIFFERENT = frozenset({"run id", "started", "ended", "load_average"})
"""These tell runs apart but explain nothing; they stand in the full list only."""

SIZES = ("memory_bytes", "device_memory_bytes")
UNKNOWN = "unknown"


def environment(places: Sequence[Place]) -> Section:
    """The section: a column for each run."""
    facts = [_facts(place) for place in places]
    fields = tuple(dict.fromkeys(field for one in facts for field in one))
    different = tuple(
        field
        for field in fields
        if field not in ALWAYS_DIFFERENT and len({one.get(field, numbers.MISSING) for one in facts}) > 1
    )
    everything = _table(places, facts, fields, f"All {one_of(len(fields), 'field')}", fold="Everything recorded")
    if len(places) == 1:
        answer = "One run, so nothing differs."
    elif not different:
        answer = f"The {len(places)} runs agree in every field."
    else:
        answer = f"{one_of(len(different), 'field')} of {len(fields)} differ between the {len(places)} runs."
    shown = (_table(places, facts, different, "Fields that differ between the runs."),) if different else ()
    return Section("environment", "Environment", QUESTION, answer, (Part(tables=(*shown, everything)),))


def _table(
    places: Sequence[Place], facts: Sequence[dict[str, str]], fields: Sequence[str], caption: str, fold: str = ""
) -> Table:
    columns = (
        Column("Field"),
        *(Column(place.label, place.run_id if place.run_id not in place.label else "") for place in places),
    )
    rows = tuple(Row((Cell(field), *(_cell(one.get(field)) for one in facts))) for field in fields)
    return Table(caption, columns, (Group(rows),), fold=fold)


def _cell(text: str | None) -> Cell:
    return Cell(numbers.MISSING if text is None else text, tone=Tone.MUTED if text in (None, UNKNOWN) else Tone.PLAIN)


def _facts(place: Place) -> dict[str, str]:
    """Every recorded field as text, nested ones by `outer.inner`."""
    manifest = place.run.manifest
    facts = {
        "run id": manifest.run_id,
        "started": manifest.started,
        "ended": place.run.ended or "cut short",
        "jaxmeter": manifest.tool_version,
        "schema version": str(manifest.schema_version),
        "backend": manifest.backend,
    }
    for outer in (msgspec.structs.asdict(manifest.environment), msgspec.structs.asdict(manifest.settings)):
        for field, value in outer.items():
            if isinstance(value, dict):
                facts.update({f"{field}.{key}": _text(inner) for key, inner in sorted(value.items())})
            else:
                facts[field] = numbers.memory(value) if field in SIZES and value is not None else _text(value)
    return facts


def _text(value: object) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value)
