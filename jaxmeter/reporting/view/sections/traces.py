"""Where the time of a step goes, by a profiler capture: a ledger, what bounds the step, and its largest operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from jaxmeter.document import numbers
from jaxmeter.document.model import Cell, Column, Group, Row, Table, Tone
from jaxmeter.harness.metrics.derived import describe_bound_of, describe_tracing, find_trace, is_slowed_down
from jaxmeter.harness.metrics.reading import Case, Variant
from jaxmeter.harness.metrics.write import NO_LINE, describe_finding, write
from jaxmeter.harness.record import TraceDetails
from jaxmeter.harness.record.trace_summary import TraceSummary
from jaxmeter.harness.record.wording import counted, visible
from jaxmeter.harness.traces.ledger import GROUPS
from jaxmeter.harness.traces.summary import count_device_steps, find_rate

from ..cells import CaseSection, VariantColumn, drop_empty_columns, make_column, make_variant_table
from ..runs import label_case

MOST_OPERATIONS, MOST_LINES = 5, 5

SMALLEST_PART = 0.01
"""Of a ledger, written below its bar."""

LEDGER_CAPTION = (
    "A captured step, divided into device, transfer, dispatch with compilation, host and "
    "idle. Where traced ÷ timed is between 0.8× and 1.25×, the shares hold for the timed step too."
)
OPERATIONS_CAPTION = (
    "The operations that take most of the devices' busy time, with the line of the user's code that they come from. "
    "Rates are those of the captured step."
)

LINES_CAPTION = "The lines of the user's code whose operations take most of the devices' busy time."


def _list_tables(cases: Sequence[Case]) -> Iterator[Table]:
    columns = (
        VariantColumn(Column("Bound by"), _write_bound),
        "busy_share",
        "device_busy_s",
        VariantColumn(make_column("traced_over_timed", "Traced ÷ timed"), _write_slowdown),
        VariantColumn(Column("Parts of a step"), _write_parts),
    )
    yield make_variant_table(cases, LEDGER_CAPTION, columns, lambda variant: find_trace(variant) is not None)
    of_operations = (
        Column("Operation", "line of the code"),
        Column("Kind"),
        Column("Share", numeric=True),
        Column("Runs", "a step and device", numeric=True),
        Column("FLOP/s", numeric=True),
        Column("B/s", numeric=True),
    )
    yield drop_empty_columns(Table(OPERATIONS_CAPTION, of_operations, _group_by_variant(cases, _list_operations)))
    of_lines = (Column("Line"), Column("Share", numeric=True))
    yield Table(LINES_CAPTION, of_lines, _group_by_variant(cases, _list_lines))


def _group_by_variant(cases: Sequence[Case], list_rows: Callable[[TraceSummary], Iterable[Row]]) -> tuple[Group, ...]:
    """Return the rows of each variant whose capture was read and has some."""
    of_variants = (
        (variant, tuple(list_rows(summary)))
        for case in cases
        for variant in case.shown
        if (summary := find_trace(variant)) is not None
    )
    return tuple(
        Group(rows, f"{variant.planned.name} · {label_case(variant.case)}") for variant, rows in of_variants if rows
    )


def _write_bound(variant: Variant) -> Cell:
    """Return what bounds a step, and in small letters by how much."""
    first, _, rest = describe_bound_of(variant).partition(" (")
    return Cell(first, rest.rstrip(")"))


def _write_slowdown(variant: Variant) -> Cell:
    slowdown = variant.read("traced_over_timed")
    return Cell(write(slowdown.metric, slowdown.estimate), tone=Tone.WARN if is_slowed_down(variant) else Tone.PLAIN)


def _write_parts(variant: Variant) -> Cell:
    """Return the parts of a ledger in the order of its bar."""
    summary = find_trace(variant)
    ledger = {} if summary is None else summary.ledger
    known = ((part, ledger.get(part, 0.0)) for parts in GROUPS.values() for part in parts)
    return Cell(", ".join(f"{part} {numbers.percent(share)}" for part, share in known if share >= SMALLEST_PART))


def _list_operations(summary: TraceSummary) -> Iterator[Row]:
    shown = summary.operations[:MOST_OPERATIONS]
    for operation in shown:
        yield Row(
            (
                Cell(visible(operation.name), visible(operation.source)),
                Cell(operation.category, visible(operation.opcode)),
                Cell(numbers.percent(operation.share)),
                Cell(numbers.number(operation.count / max(1, count_device_steps(summary)))),
                Cell(numbers.amount(find_rate(operation, operation.flops), "FLOP/s")),
                Cell(numbers.amount(find_rate(operation, operation.bytes), "B/s")),
            )
        )
    others = summary.others + len(summary.operations) - len(shown)
    if others:
        share = max(0.0, 1.0 - sum(operation.share for operation in shown))
        yield Row(
            (
                Cell(counted(others, "more operation"), tone=Tone.MUTED),
                Cell(),
                Cell(numbers.percent(share)),
                *[Cell()] * 3,
            )
        )


def _list_lines(summary: TraceSummary) -> Iterator[Row]:
    named = [source for source in summary.by_source if source]
    if not named:
        return
    for source in named[:MOST_LINES]:
        yield Row((Cell(visible(source)), Cell(numbers.percent(summary.by_source[source]))))
    rest = sum(share for source, share in summary.by_source.items() if source not in named[:MOST_LINES])
    if rest > 0:
        yield Row((Cell("other lines, and operations without one", tone=Tone.MUTED), Cell(numbers.percent(rest))))


def _list_notes(cases: Sequence[Case]) -> Iterator[str]:
    """Yield what is wrong with captures, each sentence once with the variants that it is of."""
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


SECTION = CaseSection(2, "traces", "Time", "Where does the time go?", _list_tables, _list_notes)
