"""Memory: what a program holds by the compiler's plan and during a call, whether it fits, and what is largest in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxmeter.document import numbers
from jaxmeter.document.model import Cell, Column, Group, Row, Table, Tone
from jaxmeter.harness.metrics.plausibility import usable_size
from jaxmeter.harness.metrics.reading import Case, Variant
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.metrics.write import write
from jaxmeter.harness.record import Buffer, MemoryDetails
from jaxmeter.harness.record.wording import counted, shorten

from ..answers import SMALLEST_SHARE
from ..cells import (
    LONGEST_REASON,
    NOTHING,
    CaseSection,
    VariantColumn,
    list_notes_of_section,
    list_unplanned,
    make_cell,
    make_column,
    make_variant_table,
)
from ..figures.points import CALLED, PLANNED, SHARE
from ..runs import name_variant

SAVED = "donation_saves_bytes"

INCOMPLETE = "without products"
"""Mark of a plan that leaves out the working memory of matrix products and convolutions."""

MOST_PROGRAMS = 20
MOST_BUFFERS = 5
"""The record holds a few more; whoever looks for memory to save begins with the largest."""


def _list_tables(cases: Sequence[Case]) -> Iterator[Table]:
    variants = [variant for case in cases for variant in case.shown if _is_known(variant)]
    caption = (
        "From memory_analysis of the compiled program: the plan, no measurement of a run. Its peak is the compiler's, "
        "or arg + out + temp − alias."
    )
    if any(variant.read(CALLED).interval for variant in variants):
        caption += " A call: the most that one call held, in a process of its own."
    columns = (
        "argument_bytes",
        "output_bytes",
        "temp_bytes",
        "alias_bytes",
        "code_bytes",
        VariantColumn(make_column(PLANNED), _write_plan),
        "allocated_bytes",  # of the plan, from jaxlib 0.11.2 on, as the next
        "padding_bytes",
        VariantColumn(make_column(CALLED), _write_call),
        VariantColumn(make_column(SHARE), _write_share),
        VariantColumn(make_column(SAVED), _write_donation),
    )
    yield make_variant_table(cases, caption, columns, _is_known)
    yield from _list_buffers(variants)


def _list_notes(cases: Sequence[Case]) -> Iterator[str]:
    variants = [variant for case in cases for variant in case.shown]
    known = sum(map(_is_known, variants))
    if known:
        yield from list_notes_of_section(variants, "memory")
    if 0 < known < len(variants):
        yield f"Not listed: {counted(len(variants) - known, 'variant')} without a memory analysis."


def _is_known(variant: Variant) -> bool:
    """Return whether a variant has a plan, or was watched during a call."""
    return any(variant.read(metric).interval for metric in (PLANNED, CALLED))


def _write_plan(variant: Variant) -> Cell:
    plan = variant.read(PLANNED)
    return make_cell(plan, INCOMPLETE if plan.interval is not None and list_unplanned(variant) else "")


def _write_call(variant: Variant) -> Cell:
    called, over = variant.read(CALLED), variant.read("measured_over_planned")
    plan = "the plan" if variant.case.planned.devices == 1 else "one device's plan"
    has_both = called.interval is not None and over.estimate
    return make_cell(called, f"{write(over.metric, over.estimate)} {plan}" if has_both else "")


def _write_share(variant: Variant) -> Cell:
    share = variant.read(SHARE)
    if share.estimate is not None and share.estimate > 1:
        capacity = write(METRICS[PLANNED], variant.environment.device_memory_bytes)
        needed = write(METRICS[PLANNED], variant.read(PLANNED).estimate)
        return Cell(write(share.metric, share.estimate), f"needs {needed} of {capacity}", Tone.BAD)
    if share.estimate is not None and 0 < share.estimate < SMALLEST_SHARE:
        return Cell(f"below {write(share.metric, SMALLEST_SHARE)}", tone=Tone.MUTED)
    return make_cell(share)


def _write_donation(variant: Variant) -> Cell:
    saved, share = variant.read(SAVED), variant.read("donation_share")
    if saved.estimate is None:
        return NOTHING
    if saved.estimate == 0:
        return Cell("nothing", tone=Tone.MUTED)
    detail = "" if share.interval is None else write(share.metric, share.estimate)
    if saved.estimate > 0:
        return make_cell(saved, detail)
    return Cell(f"costs {write(saved.metric, -saved.estimate)}", detail)


def _list_buffers(variants: Sequence[Variant]) -> Iterator[Table]:
    """Yield the largest buffers of the programs that hold most."""
    known = ((variant, variant.details(MemoryDetails)) for variant in variants)
    programs = [(variant, details.buffers) for variant, details in known if details is not None and details.buffers]
    programs.sort(key=lambda pair: -(pair[0].read(PLANNED).estimate or 0.0))
    columns = (
        Column("Buffer"),
        Column("Size", numeric=True),
        Column("Shape"),
        Column("JAX operation"),
        Column("Source"),
    )
    shown = programs[:MOST_PROGRAMS]
    left = len(programs) - len(shown)
    rest = f" {counted(left, 'program')} with less left out." if left else ""
    caption = (
        f"The {MOST_BUFFERS} largest buffers of each program, programs with the largest plans first. "
        f"A buffer may hold several values, one after the other: the largest is named.{rest}"
    )
    groups = tuple(_make_buffer_group(variant, buffers) for variant, buffers in shown)
    yield Table(caption, columns, groups, fold="Largest buffers")


def _make_buffer_group(variant: Variant, buffers: Sequence[Buffer]) -> Group:
    # Damaged sizes last: what cannot be read is not the largest.
    by_size = sorted(buffers, key=lambda buffer: -(usable_size(buffer.size_bytes) or 0.0))
    return Group(tuple(map(_make_buffer_row, by_size[:MOST_BUFFERS])), name_variant(variant))


def _make_buffer_row(buffer: Buffer) -> Row:
    several = usable_size(buffer.values)
    details = filter(None, (buffer.instruction, f"{numbers.count(several)} values" if several and several > 1 else ""))
    cells = (
        Cell(buffer.kind or numbers.MISSING, ", ".join(shorten(detail, LONGEST_REASON) for detail in details)),
        Cell(numbers.memory(usable_size(buffer.size_bytes))),
        *(
            Cell(shorten(text, LONGEST_REASON)) if text else NOTHING
            for text in (buffer.shape, buffer.operation, buffer.source)
        ),
    )
    return Row(cells)


SECTION = CaseSection(
    4, "memory", "Memory", "How much memory does it need, and does it fit?", _list_tables, _list_notes
)
