"""Memory: what a program holds by the compiler's plan and during a call, whether it fits, and what is largest in it."""

from __future__ import annotations

from collections.abc import Sequence

from harness.record import Buffer

from .. import numbers
from ..text import one_of, shorten
from .measured import Case, Variant, size_of
from .parts import Cell, Column, Group, Part, Row, Section, StackMark, Table, Tone
from .words import LONGEST_REASON, grouped, name_cell, name_of, noted, without_empty

QUESTION = "What does it hold, and does it fit?"
FIELDS = ("argument_bytes", "output_bytes", "temp_bytes", "alias_bytes", "code_bytes")
STACK = ("argument", "output less alias", "temp", "a call, where there is no plan")

SMALLEST_SHARE = 1e-3
"""Of the device: below it, how much less says nothing to who plans memory."""

MOST_PROGRAMS = 20
MOST_BUFFERS = 5
"""The record holds a few more; whoever looks for memory to save begins with the largest."""


def memory(cases: Sequence[Case]) -> Section:
    """The section: a row for every variant that has a plan or was watched during a call, then the largest buffers."""
    variants = [variant for case in cases for variant in case.variants]
    listed = [variant for variant in variants if _is_listed(variant)]
    if not listed:
        return Section("memory", "Memory", QUESTION, "Empty: no memory analysis was recorded.")
    called = any(_called_bytes(variant) is not None for variant in listed)
    columns = (
        Column("Variant"),
        *(Column(field.removesuffix("_bytes"), numeric=True) for field in FIELDS),
        Column("Planned", "at its peak", numeric=True),
        Column("A call", "measured peak", numeric=True),
        Column("Of the device", "planned", numeric=True),
        Column("Donation saves", "of the plan", numeric=True),
        Column("Bytes", "linear, by case", plot=True),
    )
    caption = (
        "From memory_analysis of the compiled program: the plan, no measurement of a run. Its peak is the compiler's, "
        "or arg + out + temp − alias. A bar's parts add up to more than the peak where they are not held at once; its "
        "length is relative to the longest of its case."
        + (" A call: the most that one call held, in a process of its own." if called else "")
    )
    groups = grouped(cases, lambda variant: _row(variant) if variant in listed else None, _scale)
    table = without_empty(Table(caption, columns, groups, STACK if called else STACK[:-1]), kept=len(FIELDS) + 2)
    rest = len(variants) - len(listed)
    not_listed = (f"Not listed: {one_of(rest, 'variant')} without a memory analysis.",) if rest else ()
    part = Part(tables=(table, *_buffers(listed)), notes=(*noted(variants, "memory"), *not_listed))
    return Section("memory", "Memory", QUESTION, _answer(listed), (part,))


def planned_bytes(variant: Variant) -> float | None:
    """What the program holds at its peak, as the compiler plans it; None where a part is missing."""
    outcome = variant.outcomes.get("memory")
    if outcome is not None and "peak_bytes" in outcome.values:
        return variant.typical("peak_bytes", "memory")
    # Runs before there was a peak: all but aliases, once.
    argument, output, temp, alias = (variant.typical(field, "memory") for field in FIELDS[:4])
    if argument is None or output is None or temp is None or alias is None:
        return None
    return argument + output + temp - alias


def capacity_share(variant: Variant) -> float | None:
    """The plan over what programs may use of the device; None where either is not known."""
    planned = planned_bytes(variant)
    capacity = _capacity(variant)
    return None if planned is None or capacity is None else planned / capacity


def _capacity(variant: Variant) -> float | None:
    return size_of(variant.case.place.run.manifest.environment.device_memory_bytes) or None


def _called_bytes(variant: Variant) -> float | None:
    return variant.typical("runtime_peak_bytes", "memory")


def _is_listed(variant: Variant) -> bool:
    return planned_bytes(variant) is not None or _called_bytes(variant) is not None


def _row(variant: Variant) -> Row:
    planned = planned_bytes(variant)
    values = [variant.typical(field, "memory") for field in FIELDS]
    longest = max(sum(_parts(other)) for other in variant.case.variants)
    cells = (
        name_cell(variant),
        *(Cell(numbers.memory(value), tone=Tone.MUTED if value is None else Tone.PLAIN) for value in values),
        Cell(numbers.memory(planned), tone=Tone.MUTED if planned is None else Tone.PLAIN),
        _called(variant),
        _share(variant),
        _donation(variant),
        Cell(mark=StackMark(tuple(part / longest for part in _parts(variant)) if longest > 0 else ())),
    )
    return Row(cells)


def _parts(variant: Variant) -> tuple[float, ...]:
    """Bytes of each of STACK."""
    if planned_bytes(variant) is None:
        return 0.0, 0.0, 0.0, _called_bytes(variant) or 0.0
    argument, output, temp, alias = (variant.typical(field, "memory") or 0.0 for field in FIELDS[:4])
    # More alias than output would make a negative part; the numbers beside the bar tell the truth.
    return argument, max(output - alias, 0.0), temp, 0.0


def _scale(case: Case) -> str:
    return f"a bar of full width is {numbers.memory(max(sum(_parts(variant)) for variant in case.variants))}"


def _called(variant: Variant) -> Cell:
    called, planned = _called_bytes(variant), planned_bytes(variant)
    if called is None:
        return Cell(numbers.MISSING, tone=Tone.MUTED)
    plan = "the plan" if variant.case.planned.devices == 1 else "one device's plan"
    return Cell(numbers.memory(called), f"{numbers.gain(called / planned)} {plan}" if planned and called else "")


def _share(variant: Variant) -> Cell:
    share, capacity = capacity_share(variant), _capacity(variant)
    if share is None:
        return Cell(numbers.MISSING, tone=Tone.MUTED)
    if share > 1:
        needed = f"needs {numbers.memory(planned_bytes(variant))} of {numbers.memory(capacity)}"
        return Cell(numbers.percent(share), needed, Tone.BAD)
    if 0 < share < SMALLEST_SHARE:
        return Cell(f"below {numbers.percent(SMALLEST_SHARE)}", tone=Tone.MUTED)
    return Cell(numbers.percent(share))


def _donation(variant: Variant) -> Cell:
    saved, planned = variant.change("donation_saves_bytes", "memory"), planned_bytes(variant)
    if saved is None:
        return Cell(numbers.MISSING, tone=Tone.MUTED)
    if saved == 0:
        return Cell("nothing", tone=Tone.MUTED)
    detail = numbers.percent(saved / planned) if planned else ""
    return Cell(numbers.memory(saved), detail) if saved > 0 else Cell(f"costs {numbers.memory(-saved)}", detail)


def _answer(listed: Sequence[Variant]) -> str:
    large = [variant for variant in listed if (capacity_share(variant) or 0.0) > 1]
    plans = {variant: planned for variant in listed if (planned := planned_bytes(variant)) is not None}
    beyond = f"{one_of(len(large), 'variant')} {'does' if len(large) == 1 else 'do'} not fit. " if large else ""
    if not plans:
        return "Only calls were measured: no variant has a plan of its own."
    largest = max(plans, key=plans.__getitem__)
    share = capacity_share(largest)
    of = f", {numbers.percent(share)} of the device" if share is not None and share >= SMALLEST_SHARE else ""
    return f"{beyond}Largest plan: {numbers.memory(plans[largest])}{of}, {name_of(largest)}."


def _buffers(listed: Sequence[Variant]) -> tuple[Table, ...]:
    """The largest buffers of the programs that hold most."""
    known = [variant for variant in listed if variant.buffers]
    known.sort(key=lambda variant: -(planned_bytes(variant) or 0.0))
    if not known:
        return ()
    columns = (
        Column("Buffer"),
        Column("Size", numeric=True),
        Column("Shape"),
        Column("JAX operation"),
        Column("Source"),
    )
    shown = known[:MOST_PROGRAMS]
    groups = tuple(_buffer_group(variant) for variant in shown)
    rest = f" {one_of(len(known) - len(shown), 'program')} with less left out." if len(known) > len(shown) else ""
    caption = (
        f"The {MOST_BUFFERS} largest places in each program's memory, programs with the largest plans first. "
        f"A place may hold several values, one after the other: the largest is named.{rest}"
    )
    return (Table(caption, columns, groups, fold="Largest buffers"),)


def _buffer_group(variant: Variant) -> Group:
    # Damaged sizes last: what cannot be read is not the largest.
    by_size = sorted(variant.buffers, key=lambda buffer: -(size_of(buffer.size_bytes) or 0.0))
    return Group(tuple(map(_buffer_row, by_size[:MOST_BUFFERS])), name_of(variant))


def _buffer_row(buffer: Buffer) -> Row:
    several = size_of(buffer.values)
    details = [buffer.instruction, f"{numbers.count(several)} values" if several and several > 1 else ""]
    cells = (
        Cell(buffer.kind or numbers.MISSING, ", ".join(shorten(one, LONGEST_REASON) for one in details if one)),
        Cell(numbers.memory(size_of(buffer.size_bytes))),
        *(
            Cell(shorten(text, LONGEST_REASON)) if text else Cell(numbers.MISSING, tone=Tone.MUTED)
            for text in (buffer.shape, buffer.operation, buffer.source)
        ),
    )
    return Row(cells)
