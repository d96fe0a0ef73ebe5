"""Memory: the compiler's plan as a stack, what was measured as a mark, and the device's memory as the limit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jaxmeter.harness.metrics.metric import Unit
from jaxmeter.harness.metrics.reading import Case, Variant

from ... import numbers
from ..figure_model import Axis, Fill, Limit, Part, PointRow, Points, StackRow, Stacks, describe_rows
from .marks import find_hue, make_mark, name_among, name_case, name_variant

PLANNED, MEASURED, SHARE = "planned_peak_bytes", "measured_peak_bytes", "capacity_share"

NEAR_FULL = 0.2
"""Share of the device's memory from which on the limit is drawn: before, it would press all bars to nothing."""

MOST_ROWS = 6

LONGEST_ROW = 18
"""Letters of the name of a row of the overview."""


def draw_memory(cases: Iterable[Case]) -> Stacks | None:
    """Return a row for each variant of a case that has a plan; None without any."""
    rows, limits = [], set()
    for case in cases:
        for variant in case.shown:
            if (row := _make_row(variant)) is not None:
                rows.append(row)
                if (variant.read(SHARE).estimate or 0.0) >= NEAR_FULL:
                    limits.add(variant.environment.device_memory_bytes)
    if not rows:
        return None
    alt = "Planned memory, and measured peak memory. " + describe_rows(f"{row.label}: {row.total}" for row in rows)
    known = [one for one in limits if one]
    limit = Limit(max(known), f"full: {numbers.memory(max(known))}") if known else None
    title = "planned (bars), measured (marks)" if any(row.mark is not None for row in rows) else "planned"
    return Stacks(alt, Axis(title, Unit.BYTES), tuple(rows), limit=limit)


def draw_shares(cases: Sequence[Case]) -> Points | None:
    """Return the largest plans as shares of their devices' memory, one of each workload; None without any."""
    rows = []
    for case in _choose_largest(cases):
        known = [one for one in case.shown if one.read(SHARE).estimate]
        if known:
            largest = max(known, key=lambda one: one.read(SHARE).estimate or 0.0)
            mark = make_mark(largest, SHARE, name=name_case(case))
            if mark is not None:
                note = numbers.memory(largest.read(PLANNED).estimate)
                label = name_among(case, cases, LONGEST_ROW)
                rows.append((largest.read(SHARE).estimate or 0.0, PointRow(label, (mark,), note)))
    rows.sort(key=lambda one: -one[0])
    shown = tuple(row for _, row in rows[:MOST_ROWS])
    if not shown:
        return None
    alt = "Planned peak memory as a share of the device's. " + describe_rows(row.marks[0].says for row in shown)
    axis = Axis("share of the memory, log", Unit.SHARE, is_log=True)
    return Points(alt, axis, shown, note_title="planned", limit=Limit(1.0, "full"))


def _choose_largest(cases: Iterable[Case]) -> Iterable[Case]:
    """Return the case with the largest plan of each workload on each machine."""
    found: dict[tuple[str, str, str], Case] = {}
    for case in cases:
        key = case.run.manifest.machine, case.run.where, case.planned.workload
        if key not in found or _find_largest_plan(case) > _find_largest_plan(found[key]):
            found[key] = case
    return found.values()


def _find_largest_plan(case: Case) -> float:
    return max((one.read(SHARE).estimate or 0.0 for one in case.shown), default=0.0)


def _make_row(variant: Variant) -> StackRow | None:
    if variant.read(PLANNED).interval is None:
        return None
    argument, output, temp, alias = (
        variant.read(name).estimate or 0.0 for name in ("argument_bytes", "output_bytes", "temp_bytes", "alias_bytes")
    )
    label = name_variant(variant)
    amounts = (("arguments", argument, Fill.FIRST), ("outputs", max(output - alias, 0.0), Fill.SECOND))
    parts = tuple(
        Part(name, amount, fill, f"{label}: {name} {numbers.memory(amount)}")
        for name, amount, fill in (*amounts, ("temporary", temp, Fill.THIRD))
        if amount > 0
    )
    mark = make_mark(variant, MEASURED, name=f"{label}, measured")
    total = numbers.memory(variant.read(PLANNED).estimate)
    return StackRow(label, find_hue(variant.case.run), parts, total, mark)
