"""Memory: what a program holds by the compiler's plan and during a call, whether it fits, and what is largest in it."""

from __future__ import annotations

from collections.abc import Sequence

from jaxmeter.harness.metrics.metric import Reading
from jaxmeter.harness.metrics.plausibility import usable_size
from jaxmeter.harness.metrics.reading import Case, Variant
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.record import Buffer, MemoryDetails

from ... import numbers
from ...text import counted, shorten
from ...write import write
from ..cells import drop_empty_columns, group_rows, make_cell, make_column, make_name_cell
from ..names import name_variant
from ..page_model import Cell, Column, Group, Part, Row, Section, Table
from ..reasons import LONGEST_REASON, list_notes_of_section
from ..results import list_unplanned
from ..tone import Tone

QUESTION = "How much memory does it need, and does it fit?"
PLANNED, CALLED, SHARE, SAVED = "planned_peak_bytes", "measured_peak_bytes", "capacity_share", "donation_saves_bytes"
NEWER = ("allocated_bytes", "padding_bytes")
"""Metrics of the plan from jaxlib 0.11.2 on."""

FIELDS = ("argument_bytes", "output_bytes", "temp_bytes", "alias_bytes", "code_bytes")

SMALLEST_SHARE = 1e-3
"""Of the device: below it, how much less says nothing to who plans memory."""

INCOMPLETE = "without products"
"""Mark of a plan that leaves out the working memory of matrix products and convolutions."""

UNPLANNED = "the plan leaves out the working memory of products"

_NOTHING = Cell(numbers.MISSING, tone=Tone.MUTED)

MOST_PROGRAMS = 20
MOST_BUFFERS = 5
"""The record holds a few more; whoever looks for memory to save begins with the largest."""


def make_memory_section(cases: Sequence[Case]) -> Section:
    """The section: a row for every variant that has a plan or was watched during a call, then the largest buffers."""
    variants = [variant for case in cases for variant in case.shown]
    listed = _find_listed(cases)
    if not listed:
        return Section("memory", "Memory", QUESTION, describe_memory(cases))
    called = any(variant.read(CALLED).interval for variant in listed)
    columns = (
        Column("Variant"),
        *map(make_column, (*FIELDS, PLANNED, *NEWER, CALLED, SHARE, SAVED)),
    )
    caption = (
        "From memory_analysis of the compiled program: the plan, no measurement of a run. Its peak is the compiler's, "
        "or arg + out + temp − alias."
        + (" A call: the most that one call held, in a process of its own." if called else "")
    )
    groups = group_rows(cases, lambda variant: _row(variant) if variant in listed else None)
    table = drop_empty_columns(Table(caption, columns, groups), kept=len(FIELDS) + 2)
    rest = len(variants) - len(listed)
    not_listed = (f"Not listed: {counted(rest, 'variant')} without a memory analysis.",) if rest else ()
    part = Part(tables=(table, *_buffers(listed)), notes=(*list_notes_of_section(variants, "memory"), *not_listed))
    return Section("memory", "Memory", QUESTION, describe_memory(cases), (part,))


def _find_listed(cases: Sequence[Case]) -> list[Variant]:
    """Those with a plan, or that were watched during a call."""
    variants = (variant for case in cases for variant in case.shown)
    return [one for one in variants if any(one.read(metric).interval for metric in (PLANNED, CALLED))]


def _row(variant: Variant) -> Row:
    cells = (
        make_name_cell(variant),
        *map(_make_cell, map(variant.read, FIELDS)),
        _make_cell(variant.read(PLANNED), INCOMPLETE if list_unplanned(variant) else ""),
        *map(_make_cell, map(variant.read, NEWER)),
        _called(variant),
        _share(variant),
        _donation(variant),
    )
    return Row(cells)


def _make_cell(reading: Reading, detail: str = "") -> Cell:
    return make_cell(reading, detail) if reading.interval is not None else _NOTHING


def _called(variant: Variant) -> Cell:
    called, over = variant.read(CALLED), variant.read("measured_over_planned")
    if called.interval is None:
        return _NOTHING
    plan = "the plan" if variant.case.planned.devices == 1 else "one device's plan"
    return make_cell(called, f"{write(over.metric, over.estimate)} {plan}" if over.estimate else "")


def _share(variant: Variant) -> Cell:
    share = variant.read(SHARE)
    if share.estimate is None:
        return _NOTHING
    if share.estimate > 1:
        capacity = write(METRICS[PLANNED], variant.environment.device_memory_bytes)
        needed = write(METRICS[PLANNED], variant.read(PLANNED).estimate)
        return Cell(write(share.metric, share.estimate), f"needs {needed} of {capacity}", Tone.BAD)
    if 0 < share.estimate < SMALLEST_SHARE:
        return Cell(f"below {write(share.metric, SMALLEST_SHARE)}", tone=Tone.MUTED)
    return make_cell(share)


def _donation(variant: Variant) -> Cell:
    saved, share = variant.read(SAVED), variant.read("donation_share")
    if saved.estimate is None:
        return _NOTHING
    if saved.estimate == 0:
        return Cell("nothing", tone=Tone.MUTED)
    detail = "" if share.interval is None else write(share.metric, share.estimate)
    if saved.estimate > 0:
        return make_cell(saved, detail)
    return Cell(f"costs {write(saved.metric, -saved.estimate)}", detail)


def describe_memory(cases: Sequence[Case]) -> str:
    """The largest plan of all, and how many do not fit."""
    listed = _find_listed(cases)
    if not listed:
        return "No memory analysis was recorded."
    large = [variant for variant in listed if (variant.read(SHARE).estimate or 0.0) > 1]
    plans = {variant: planned for variant in listed if (planned := variant.read(PLANNED).estimate) is not None}
    beyond = f"{counted(len(large), 'variant')} {'does' if len(large) == 1 else 'do'} not fit. " if large else ""
    if not plans:
        return "Only calls were measured: no variant has a plan of its own."
    largest = max(plans, key=plans.__getitem__)
    share = largest.read(SHARE)
    of = ""
    if share.estimate is not None and share.estimate >= SMALLEST_SHARE:
        of = f", {write(share.metric, share.estimate)} of the device"
    called = largest.read(CALLED)
    if called.estimate is not None and list_unplanned(largest):
        of += f" (measured {write(called.metric, called.estimate)}, as {UNPLANNED})"
    return f"{beyond}Largest plan: {write(METRICS[PLANNED], plans[largest])}{of}, {name_variant(largest)}."


def _list_buffers(variant: Variant) -> tuple[Buffer, ...]:
    details = variant.details(MemoryDetails)
    return () if details is None else details.buffers


def _buffers(listed: Sequence[Variant]) -> tuple[Table, ...]:
    """The largest buffers of the programs that hold most."""
    known = [variant for variant in listed if _list_buffers(variant)]
    known.sort(key=lambda variant: -(variant.read(PLANNED).estimate or 0.0))
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
    rest = f" {counted(len(known) - len(shown), 'program')} with less left out." if len(known) > len(shown) else ""
    caption = (
        f"The {MOST_BUFFERS} largest buffers of each program, programs with the largest plans first. "
        f"A buffer may hold several values, one after the other: the largest is named.{rest}"
    )
    return (Table(caption, columns, groups, fold="Largest buffers"),)


def _buffer_group(variant: Variant) -> Group:
    # Damaged sizes last: what cannot be read is not the largest.
    by_size = sorted(_list_buffers(variant), key=lambda buffer: -(usable_size(buffer.size_bytes) or 0.0))
    return Group(tuple(map(_buffer_row, by_size[:MOST_BUFFERS])), name_variant(variant))


def _buffer_row(buffer: Buffer) -> Row:
    several = usable_size(buffer.values)
    details = [buffer.instruction, f"{numbers.count(several)} values" if several and several > 1 else ""]
    cells = (
        Cell(buffer.kind or numbers.MISSING, ", ".join(shorten(one, LONGEST_REASON) for one in details if one)),
        Cell(numbers.memory(usable_size(buffer.size_bytes))),
        *(
            Cell(shorten(text, LONGEST_REASON)) if text else Cell(numbers.MISSING, tone=Tone.MUTED)
            for text in (buffer.shape, buffer.operation, buffer.source)
        ),
    )
    return Row(cells)
