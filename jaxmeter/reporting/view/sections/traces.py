"""Where the time of a step goes, by a profiler capture: a ledger, what bounds the step, and its largest operations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from jaxmeter.harness.metrics.details_text import NO_LINE, describe_finding
from jaxmeter.harness.metrics.reading import Case, Variant
from jaxmeter.harness.metrics.traced import (
    describe_bound_of,
    describe_tracing,
    find_bound_of,
    find_trace,
    is_slowed_down,
)
from jaxmeter.harness.record import TraceDetails
from jaxmeter.harness.record.trace_summary import TraceSummary
from jaxmeter.harness.traces.bound import BoundKind
from jaxmeter.harness.traces.ledger import GROUPS
from jaxmeter.harness.traces.typical import count_device_steps, find_rate

from ... import numbers
from ...text import counted, visible
from ...write import write
from ..cases import label_case
from ..cells import drop_empty_columns, group_rows, make_cell, make_column, make_name_cell
from ..page_model import Cell, Column, Group, Part, Row, Section, Table
from ..tone import Tone

QUESTION = "Where does the time go?"
MOST_OPERATIONS, MOST_LINES = 5, 5

SMALLEST_PART = 0.01
"""Of a ledger, written below its bar."""

_NOTHING = Cell(numbers.MISSING, tone=Tone.MUTED)

LEDGER_CAPTION = (
    "A captured step, divided into device, transfer, dispatch with compilation, host and "
    "idle. Where traced ÷ timed is between 0.8× and 1.25×, the shares hold for the timed step too."
)
OPERATIONS_CAPTION = (
    "The operations that take most of the devices' busy time, with the line of the user's code that they come from. "
    "Rates are those of the captured step."
)

LINES_CAPTION = "The lines of the user's code whose operations take most of the devices' busy time."


def make_traces_section(cases: Sequence[Case]) -> Section | None:
    """The section: a row for each variant with a capture, then the largest operations of each.

    None where nothing was to be captured, as in most cases: one of each workload stands for it.
    """
    if not any("trace" in variant.outcomes for case in cases for variant in case.shown):
        return None
    listed = [variant for case in cases for variant in case.shown if find_trace(variant) is not None]
    answer = describe_traces(cases)
    notes = tuple(_list_notes(cases))
    if not listed:
        return Section("traces", "Time", QUESTION, answer, (Part(notes=notes),) if notes else ())
    columns = (
        Column("Variant"),
        Column("Bound by"),
        make_column("busy_share"),
        make_column("device_busy_s"),
        make_column("traced_over_timed", "Traced ÷ timed"),
        Column("Parts of a step"),
    )
    groups = group_rows(cases, lambda variant: _row(variant) if variant in listed else None)
    ledger = drop_empty_columns(Table(LEDGER_CAPTION, columns, groups), kept=3)
    tables = (ledger, _list_operations(cases, listed), _list_lines(cases, listed))
    part = Part(tables=tuple(table for table in tables if table.groups), notes=notes)
    return Section("traces", "Time", QUESTION, answer, (part,))


def describe_traces(cases: Sequence[Case]) -> str:
    """Say what bounds the steps that were captured."""
    bounds = [find_bound_of(variant) for case in cases for variant in case.shown if find_trace(variant) is not None]
    if not bounds:
        return "No answer: no step was captured; jaxmeter run --probe trace captures some."
    kinds = Counter(bound.kind for bound in bounds if bound is not None)
    undecided = kinds.pop(BoundKind.NOTHING, 0)
    unknown = sum(bound is None for bound in bounds)
    parts = [f"{count} bound by {kind.value}" for kind, count in kinds.most_common()]
    parts += [f"{undecided} without a dominant part"] if undecided else []
    parts += [f"{unknown} with an unknown bound"] if unknown else []
    return f"Of {counted(len(bounds), 'captured step')}: {', '.join(parts)}."


def _row(variant: Variant) -> Row:
    summary = find_trace(variant)
    assert summary is not None
    slowdown = variant.read("traced_over_timed")
    return Row(
        (
            make_name_cell(variant),
            Cell(*_split(describe_bound_of(variant))),
            make_cell(variant.read("busy_share")),
            _device_time(variant),
            Cell(write(slowdown.metric, slowdown.estimate), tone=Tone.WARN if is_slowed_down(variant) else Tone.PLAIN),
            Cell(_list_parts(summary)),
        )
    )


def _list_parts(summary: TraceSummary) -> str:
    """The parts of a ledger in the order of its bar."""
    known = ((part, summary.ledger.get(part, 0.0)) for parts in GROUPS.values() for part in parts)
    return ", ".join(f"{part} {numbers.percent(share)}" for part, share in known if share >= SMALLEST_PART)


def _split(text: str) -> tuple[str, str]:
    """What bounds a step, and in small letters by how much."""
    first, _, rest = text.partition(" (")
    return first, rest.rstrip(")")


def _device_time(variant: Variant) -> Cell:
    reading = variant.read("device_busy_s")
    return make_cell(reading) if reading.interval is not None else _NOTHING


def _list_operations(cases: Sequence[Case], listed: Sequence[Variant]) -> Table:
    columns = (
        Column("Operation", "line of the code"),
        Column("Kind"),
        Column("Share", numeric=True),
        Column("Runs", "a step and device", numeric=True),
        Column("FLOP/s", numeric=True),
        Column("B/s", numeric=True),
    )
    groups = tuple(
        Group(tuple(_operation_rows(summary)), f"{variant.planned.name} · {label_case(case)}")
        for case in cases
        for variant in case.shown
        if variant in listed and (summary := find_trace(variant)) is not None
    )
    return drop_empty_columns(Table(OPERATIONS_CAPTION, columns, groups), kept=4)


def _operation_rows(summary: TraceSummary) -> Iterator[Row]:
    shown = summary.operations[:MOST_OPERATIONS]
    for one in shown:
        yield Row(
            (
                Cell(visible(one.name), visible(one.source)),
                Cell(one.category, visible(one.opcode)),
                Cell(numbers.percent(one.share)),
                Cell(numbers.number(one.count / max(1, count_device_steps(summary)))),
                Cell(numbers.amount(find_rate(one, one.flops), "FLOP/s")),
                Cell(numbers.amount(find_rate(one, one.bytes), "B/s")),
            )
        )
    others = summary.others + len(summary.operations) - len(shown)
    if others:
        share = max(0.0, 1.0 - sum(one.share for one in shown))
        yield Row(
            (
                Cell(counted(others, "more operation"), tone=Tone.MUTED),
                Cell(),
                Cell(numbers.percent(share)),
                *[Cell()] * 3,
            )
        )


def _list_lines(cases: Sequence[Case], listed: Sequence[Variant]) -> Table:
    """Of variants whose programs name lines of a user's code."""
    groups = tuple(
        Group(tuple(_line_rows(summary)), f"{variant.planned.name} · {label_case(case)}")
        for case in cases
        for variant in case.shown
        if variant in listed and (summary := find_trace(variant)) is not None and any(summary.by_source)
    )
    return Table(LINES_CAPTION, (Column("Line"), Column("Share", numeric=True)), groups)


def _line_rows(summary: TraceSummary) -> Iterator[Row]:
    named = [source for source in summary.by_source if source]
    for source in named[:MOST_LINES]:
        yield Row((Cell(visible(source)), Cell(numbers.percent(summary.by_source[source]))))
    rest = sum(share for source, share in summary.by_source.items() if source not in named[:MOST_LINES])
    if rest > 0:
        yield Row((Cell("other lines, and operations without one", tone=Tone.MUTED), Cell(numbers.percent(rest))))


def _list_notes(cases: Sequence[Case]) -> Iterator[str]:
    """What is wrong with captures, each sentence once with the variants that it is of."""
    alike: dict[str, list[str]] = {}
    for case in cases:
        for variant in case.shown:
            if (traced := find_trace(variant)) is not None and list(traced.by_source) == [""]:
                alike.setdefault(NO_LINE, []).append(variant.planned.name)
            outcome = variant.outcomes.get("trace")
            details = None if outcome is None else outcome.details
            summary = details.summary if isinstance(details, TraceDetails) else None
            for finding in () if summary is None else summary.findings:
                alike.setdefault(describe_finding(finding), []).append(variant.planned.name)
            if warning := describe_tracing(variant):
                alike.setdefault(warning, []).append(variant.planned.name)
    yield from (f"{', '.join(dict.fromkeys(names))}: {visible(text)}" for text, names in alike.items())
