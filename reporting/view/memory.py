"""Memory: what the compiler plans to hold for one call."""

from __future__ import annotations

from collections.abc import Sequence

from .. import numbers
from ..text import one_of
from .measured import Case, Variant
from .parts import Cell, Column, Group, Part, Row, Section, StackMark, Table
from .words import name_of, tone_of

QUESTION = "What does the compiler plan to hold?"
FIELDS = ("argument_bytes", "output_bytes", "temp_bytes", "alias_bytes", "code_bytes")
STACK = ("argument", "output less alias", "temp")


def memory(cases: Sequence[Case]) -> Section:
    """The section, with a row for every variant that has a plan."""
    variants = [variant for case in cases for variant in case.variants]
    plans = {variant: planned for variant in variants if (planned := planned_bytes(variant)) is not None}
    if not plans:
        return Section("memory", "Memory", QUESTION, "Empty: no memory analysis was recorded.")
    largest = max(plans, key=plans.__getitem__)
    columns = (
        Column("Variant"),
        *(Column(field.removesuffix("_bytes"), numeric=True) for field in FIELDS),
        Column("Planned", "arg + out + temp − alias", numeric=True),
        Column("Share of the plan", plot=True),
    )
    groups = tuple(
        Group(tuple(_row(variant, plans[variant]) for variant in case.variants if variant in plans), case.label)
        for case in cases
        if any(variant in plans for variant in case.variants)
    )
    rest = len(variants) - len(plans)
    notes = (f"Not listed: {one_of(rest, 'variant')} without a memory analysis.",) if rest else ()
    table = Table("From memory_analysis of the compiled program; no measurement of a run.", columns, groups, STACK)
    answer = f"Largest plan: {numbers.memory(plans[largest])}, {name_of(largest)}."
    return Section("memory", "Memory", QUESTION, answer, (Part(tables=(table,), notes=notes),))


def planned_bytes(variant: Variant) -> float | None:
    """What the program holds at once: all but aliases, once; None where a part is missing."""
    argument, output, temp, alias = (variant.typical(field, "memory") for field in FIELDS[:4])
    if argument is None or output is None or temp is None or alias is None:
        return None
    return argument + output + temp - alias


def _row(variant: Variant, plan: float) -> Row:
    values = {field: variant.typical(field, "memory") for field in FIELDS}
    argument, output, temp, alias = (values[field] or 0.0 for field in FIELDS[:4])
    # More alias than output would make a negative part; the numbers beside the bar tell the truth.
    parts = (argument, max(output - alias, 0.0), temp)
    shares = tuple(min(part / plan, 1.0) for part in parts) if plan > 0 else ()
    cells = (
        Cell(variant.planned.name, tone=tone_of(variant.status)),
        *(Cell(numbers.memory(value)) for value in values.values()),
        Cell(numbers.memory(plan)),
        Cell(mark=StackMark(shares)),
    )
    return Row(cells)
