"""Stacks: what a traced step, the time of a device, a first call and the memory of a program are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jaxmeter.document import numbers
from jaxmeter.harness.metrics.derived import STAGES, find_slowdown, find_trace, is_slowed_down
from jaxmeter.harness.metrics.metric import Unit
from jaxmeter.harness.metrics.reading import Case, Variant
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.metrics.write import write_reading
from jaxmeter.harness.record.trace_summary import TracedOperation
from jaxmeter.harness.record.wording import counted, shorten, visible
from jaxmeter.harness.traces.ledger import GROUPS

from ..page_model import Axis, Fill, Limit, StackPart, StackRow, Stacks, describe_rows
from ..runs import LONGEST_TERM, find_hue, fragment_of
from .points import CALLED, PLANNED, SHARE, TIME, make_mark, name_among, name_apart, name_variant, name_workload

SMALLEST_PART = 0.005
"""Of a step; less is no mark."""

MOST_OPERATIONS = 10

LONGEST_ROW = 32
"""Letters of the name of a row of the overview."""

FILLS = (Fill.FIRST, Fill.SECOND, Fill.THIRD, Fill.FOURTH)

NAMES = {"trace_s": "trace", "lower_s": "lower", "compile_s": "compile", "first_call_s": "run"}

SUMS_OF_STAGES = COMPILED, FIRST_RESULT = "compile_total_s", "first_result_s"
"""Without the run, and with it."""

NEAR_FULL = 0.2
"""Share of the device's memory from which on the limit is drawn: before, it would press all bars to nothing."""


def draw_ledgers(variants: Iterable[Variant], newest: Sequence[Case] = ()) -> Stacks | None:
    """Return a row for each variant whose capture was read; None without any.

    Args:
      newest: The cases of the page; without them rows are named by the variant alone.
    """
    rows = []
    for variant in variants:
        shares = find_shares(variant)
        if not shares:
            continue
        label = name_row(variant, newest) if newest else name_variant(variant)
        whole = max(1.0, sum(shares.values()))  # they are recorded with few digits
        parts = tuple(
            StackPart(numbers.percent(share), share / whole, Fill(group), f"{label}: {group} {numbers.percent(share)}")
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
    files = {_name_file(operation) for operation in shown} - {""}
    rows = [_make_operation_row(variant, operation, with_file=len(files) > 1) for operation in shown]
    count = summary.others + len(summary.operations) - len(shown)
    if count:
        share = max(0.0, 1.0 - sum(operation.share for operation in shown))
        part = StackPart("", share, Fill.TRANSFER, f"{counted(count, 'other operation')}: {numbers.percent(share)}")
        rows.append(StackRow(f"{count} others", find_hue(variant.case.run), (part,), numbers.percent(share)))
    alt = f"Operations of {name_variant(variant)}: " + describe_rows(row.parts[0].says for row in rows)
    return Stacks(alt, Axis("share of busy time", Unit.SHARE), tuple(rows))


def find_busiest_line(variant: Variant) -> tuple[str, float] | None:
    """Return the source line, `train_step.py:25`, whose operations take most of the device's time, and its share."""
    summary = find_trace(variant)
    shares: dict[str, float] = {}
    for operation in () if summary is None else summary.operations:
        if operation.source:
            line = shorten(visible(operation.source).rpartition("/")[2], LONGEST_TERM)
            shares[line] = shares.get(line, 0.0) + operation.share
    return max(shares.items(), key=lambda item: item[1], default=None)


def _name_file(operation: TracedOperation) -> str:
    return visible(operation.source).rpartition("/")[2].partition(":")[0]


def _make_operation_row(variant: Variant, operation: TracedOperation, *, with_file: bool) -> StackRow:
    # The file alone: its folders take the room of the line that a reader looks for.
    share, source = (
        numbers.percent(operation.share),
        shorten(visible(operation.source).rpartition("/")[2], LONGEST_TERM),
    )
    name = shorten(visible(operation.name), LONGEST_TERM)
    says = f"{name}: {share}{f', {source}' if source else ''}"
    place = source if with_file else f"line {source.partition(':')[2]}"
    total = f"{share}, {place}" if source else share
    return StackRow(name, find_hue(variant.case.run), (StackPart("", operation.share, Fill.DEVICE, says),), total)


def name_row(variant: Variant, newest: Sequence[Case]) -> str:
    """Return the case in short; with its variant where that does not lead the case, or is eager code."""
    name = name_among(variant.case, newest, LONGEST_ROW)
    is_compiled = any(other.planned.mode in ("jit", "aot") for other in variant.case.shown)
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
    chosen = []
    for case in cases:
        traced = [variant for variant in case.shown if find_shares(variant)]
        if traced:
            chosen.append(min(traced, key=_rank_traced))
    return sorted(chosen, key=is_slowed_down)


def _rank_traced(variant: Variant) -> tuple[bool, bool, bool]:
    return variant.planned.mode != "jit", is_slowed_down(variant), not _leads(variant)


def draw_stages(variants: Iterable[Variant], metric: str = FIRST_RESULT, *, of_one_case: bool = False) -> Stacks | None:
    """Return a row for each variant that was compiled in a cold process; None without any.

    Args:
      metric: COMPILED leaves out the run; any other metric is a part of the time to the first result, which is drawn.
      of_one_case: Whether rows are named by the variant alone.
    """
    whole = COMPILED if metric == COMPILED else FIRST_RESULT
    stages = STAGES[:-1] if whole == COMPILED else STAGES
    rows, variants = [], list(variants)
    cases = [variant.case for variant in variants]
    for variant in variants:
        readings = {stage: variant.read(stage) for stage in stages}
        known = {
            stage: reading.estimate
            for stage, reading in readings.items()
            if reading.estimate is not None and reading.estimate > 0
        }
        if not known or "compile_s" not in known:
            continue
        label = name_variant(variant) if of_one_case else name_apart(variant.case, cases)
        parts = tuple(
            StackPart(NAMES[stage], known[stage], fill, f"{label}: {METRICS[stage].title} {numbers.time(known[stage])}")
            for stage, fill in zip(STAGES, FILLS, strict=True)
            if stage in known
        )
        total = numbers.time(variant.read(whole).estimate or sum(known.values()))
        rows.append(StackRow(label, find_hue(variant.case.run), parts, total, case=fragment_of(variant.case)))
    if not rows:
        return None
    title = METRICS[COMPILED].title if whole == COMPILED else "time to the first result"
    alt = f"{title[:1].upper()}{title[1:]}. " + describe_rows(f"{row.label}: {row.total}" for row in rows)
    return Stacks(alt, Axis(f"{title}, cold", Unit.SECONDS), tuple(rows))


def draw_memory(cases: Iterable[Case]) -> Stacks | None:
    """Return a row for each variant of a case that has a plan; None without any."""
    rows, limits = [], set()
    for case in cases:
        for variant in case.shown:
            if (row := _make_memory_row(variant)) is not None:
                rows.append(row)
                if (variant.read(SHARE).estimate or 0.0) >= NEAR_FULL:
                    limits.add(variant.environment.device_memory_bytes)
    if not rows:
        return None
    alt = "Planned memory, and measured peak memory. " + describe_rows(f"{row.label}: {row.total}" for row in rows)
    known = list(filter(None, limits))
    limit = Limit(max(known), f"full: {numbers.memory(max(known))}") if known else None
    title = "planned (bars), measured (marks)" if any(row.mark is not None for row in rows) else "planned"
    return Stacks(alt, Axis(title, Unit.BYTES), tuple(rows), limit=limit)


def _make_memory_row(variant: Variant) -> StackRow | None:
    if variant.read(PLANNED).interval is None:
        return None
    argument, output, temp, alias = (
        variant.read(name).estimate or 0.0 for name in ("argument_bytes", "output_bytes", "temp_bytes", "alias_bytes")
    )
    label = name_variant(variant)
    amounts = (("arguments", argument, Fill.FIRST), ("outputs", max(output - alias, 0.0), Fill.SECOND))
    parts = tuple(
        StackPart(name, amount, fill, f"{label}: {name} {numbers.memory(amount)}")
        for name, amount, fill in (*amounts, ("temporary", temp, Fill.THIRD))
        if amount > 0
    )
    mark = make_mark(variant, CALLED, name=f"{label}, measured")
    total = numbers.memory(variant.read(PLANNED).estimate)
    return StackRow(label, find_hue(variant.case.run), parts, total, mark)
