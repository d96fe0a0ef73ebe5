"""Where the time of a step goes, by a profiler capture: a stack of shares for each variant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jaxmeter.harness.metrics.metric import Unit
from jaxmeter.harness.metrics.reading import Case, Variant
from jaxmeter.harness.metrics.traced import find_slowdown, find_trace, is_slowed_down
from jaxmeter.harness.record.trace_summary import TracedOperation
from jaxmeter.harness.traces.ledger import GROUPS

from ... import numbers
from ...text import counted, shorten, visible
from ...write import write_reading
from ..figure_model import Axis, Fill, Part, StackRow, Stacks, describe_rows
from ..keys import fragment_of
from ..names import LONGEST_TERM
from .marks import TIME, find_hue, name_among, name_variant, name_workload

SMALLEST_PART = 0.005
"""Of a step; less is no mark."""

MOST_OPERATIONS = 10

LONGEST_ROW = 32
"""Letters of the name of a row of the overview."""


def draw_ledgers(variants: Iterable[Variant], told: Sequence[Case] = ()) -> Stacks | None:
    """Return a row for each variant whose capture was read; None without any.

    Args:
      told: The cases of the page; without them rows are named by the variant alone.
    """
    rows = []
    for variant in variants:
        shares = find_shares(variant)
        if not shares:
            continue
        label = name_row(variant, told) if told else name_variant(variant)
        whole = max(1.0, sum(shares.values()))  # they are recorded with few digits
        parts = tuple(
            Part(numbers.percent(share), share / whole, Fill(group), f"{label}: {group} {numbers.percent(share)}")
            for group, share in shares.items()
            if share >= SMALLEST_PART
        )
        total = write_reading(variant.read(TIME))[0] if variant.read(TIME).has_number else ""
        slowdown = find_slowdown(variant)
        if is_slowed_down(variant) and slowdown is not None:
            total += f", traced {numbers.speedup(slowdown)}"  # its shares are not those of a timed step
        rows.append(StackRow(label, find_hue(variant.case.run), parts, total, case=fragment_of(variant.case)))
    if not rows:
        return None
    alt = "Shares of a traced step. " + describe_rows(f"{row.label}: {_write_parts(row)}" for row in rows)
    return Stacks(alt, Axis("share of the traced time", Unit.SHARE), tuple(rows), has_legend=True)


def find_largest(variant: Variant) -> tuple[str, float] | None:
    """Return the part of a traced step that takes most, and its share; None without a capture."""
    return max(find_shares(variant).items(), key=lambda item: item[1], default=None)


def find_shares(variant: Variant) -> dict[str, float]:
    """Return the share of a traced step that each group of parts takes; empty without a capture or its ledger."""
    summary = find_trace(variant)
    if summary is None or not summary.ledger:
        return {}
    return {group: sum(summary.ledger.get(part, 0.0) for part in parts) for group, parts in GROUPS.items()}


def draw_operations(variant: Variant) -> Stacks | None:
    """Return a bar for each of the operations that take most of the device's time; None without a capture."""
    summary = find_trace(variant)
    if summary is None or not summary.operations:
        return None
    shown = summary.operations[:MOST_OPERATIONS]
    files = {_name_file(one) for one in shown} - {""}
    rows = [_make_operation_row(variant, one, with_file=len(files) > 1) for one in shown]
    count = summary.others + len(summary.operations) - len(shown)
    if count:
        share = max(0.0, 1.0 - sum(one.share for one in shown))
        part = Part("", share, Fill.TRANSFER, f"{counted(count, 'other operation')}: {numbers.percent(share)}")
        rows.append(StackRow(f"{count} others", find_hue(variant.case.run), (part,), numbers.percent(share)))
    alt = f"Operations of {name_variant(variant)}: " + describe_rows(row.parts[0].says for row in rows)
    return Stacks(alt, Axis("share of busy time", Unit.SHARE), tuple(rows))


def find_busiest_line(variant: Variant) -> tuple[str, float] | None:
    """Return the source line, `train_step.py:25`, whose operations take most of the device's time, and its share."""
    summary = find_trace(variant)
    shares: dict[str, float] = {}
    for one in () if summary is None else summary.operations:
        if one.source:
            line = shorten(visible(one.source).rpartition("/")[2], LONGEST_TERM)
            shares[line] = shares.get(line, 0.0) + one.share
    return max(shares.items(), key=lambda item: item[1], default=None)


def _name_file(one: TracedOperation) -> str:
    return visible(one.source).rpartition("/")[2].partition(":")[0]


def _make_operation_row(variant: Variant, one: TracedOperation, *, with_file: bool) -> StackRow:
    # The file alone: its folders take the room of the line that a reader looks for.
    share, source = numbers.percent(one.share), shorten(visible(one.source).rpartition("/")[2], LONGEST_TERM)
    name = shorten(visible(one.name), LONGEST_TERM)
    says = f"{name}: {share}{f', {source}' if source else ''}"
    place = source if with_file else f"line {source.partition(':')[2]}"
    total = f"{share}, {place}" if source else share
    return StackRow(name, find_hue(variant.case.run), (Part("", one.share, Fill.DEVICE, says),), total)


def name_row(variant: Variant, told: Sequence[Case]) -> str:
    """Return the case in short; with its variant where that does not lead the case, or is eager code."""
    name = name_among(variant.case, told, LONGEST_ROW)
    is_compiled = any(one.planned.mode in ("jit", "aot") for one in variant.case.shown)
    if variant.planned.mode == "eager" and is_compiled:
        return f"{name}, eager"
    if _leads(variant):
        return name
    named = f"{name}, {name_variant(variant)}"
    short = f"{name_workload(variant.case)}, {name_variant(variant)}"
    return named if len(named) <= LONGEST_ROW else shorten(short, LONGEST_ROW)


def _leads(variant: Variant) -> bool:
    """Return whether a variant is of the implementation that answers its suite's question, or of the baseline."""
    planned = variant.case.planned
    leading = variant.case.find(planned.baseline if planned.answer is None else planned.answer.variant)
    return leading is None or leading.planned.implementation == variant.planned.implementation


def _write_parts(row: StackRow) -> str:
    return ", ".join(part.says.removeprefix(f"{row.label}: ") for part in row.parts)


def list_traced(cases: Sequence[Case]) -> list[Variant]:
    """Return the variants whose captures were read, one of each case: by jit if any is, then like its timed step."""
    found = []
    for case in cases:
        traced = [one for one in case.shown if find_shares(one)]
        if traced:
            found.append(min(traced, key=lambda one: (one.planned.mode != "jit", is_slowed_down(one), not _leads(one))))
    return sorted(found, key=is_slowed_down)
