"""Speed: every planned case and variant, led by the paired speed-up over its baseline variant."""

from __future__ import annotations

from collections.abc import Sequence

from harness.record import INCOMPLETE, Status, statistics

from .. import numbers
from ..text import shorten
from .axis import LogAxis
from .measured import DECISIVE_PROBES, Case, Place, Variant
from .parts import Cell, Column, Group, IntervalMark, Part, Row, Section, Table, Tone
from .words import LONGEST_REASON, gain_cell, jit_sentence, level_of, name_cell, name_of, told, unreached_target

QUESTION = "How fast is each way to run it?"


def speed(places: Sequence[Place], cases: Sequence[Case]) -> Section:
    """The section, with a row for every planned variant."""
    if not any(case.variants for case in cases):
        return Section("speed", "Speed", QUESTION, "Empty: no variant was planned.")
    gains = [gain.estimate for case in cases for variant in case.variants if (gain := variant.speedup)]
    axis = LogAxis.around(gains)
    level = level_of(places)
    columns = (
        Column("Variant"),
        Column("Gain", level, numeric=True),
        Column(f"{numbers.gain(axis.low)} to {numbers.gain(axis.high)}", "log, line at 1×", plot=True),
        Column("Time", level, numeric=True),
        Column("n", numeric=True),
        Column("Dispatch", numeric=True),
        Column("jit pays", "after", numeric=True),
        Column("Rate", "declared cost", numeric=True),
        Column("Max error", numeric=True),
        Column("Notes"),
    )
    groups = tuple(_group(case, axis) for case in cases)
    caption = (
        "Gain: the baseline variant's time over this variant's, paired within each launch; above 1× is faster. "
        "n: launches, each a fresh process. !: contended. A wrong result has no speed. "
        "Algorithm and bus: bandwidths of a collective, as NCCL's tests define them."
    )
    return Section("speed", "Speed", QUESTION, _answer(cases), (Part(tables=(Table(caption, columns, groups),)),))


def _answer(cases: Sequence[Case]) -> str:
    gains = [
        (gain.estimate, variant)
        for case in cases
        for variant in case.variants
        if (gain := variant.speedup) and not variant.has_contended_gain
    ]
    if not gains:
        timed = any(variant.time for case in cases for variant in case.variants)
        return (
            "Times without a gain: no variant was paired with its baseline variant." if timed else "Nothing was timed."
        )
    largest, variant = max(gains, key=lambda pair: pair[0])
    return f"{jit_sentence(cases)}. Largest gain: {numbers.gain(largest)}, {name_of(variant)}."


def _group(case: Case, axis: LogAxis) -> Group:
    rows = tuple(_row(variant, axis) for variant in case.variants)
    return Group(rows, case.label, _detail(case), case.key)


def _detail(case: Case) -> str:
    planned, cost = case.planned, case.planned.cost
    parts = [planned.description]
    parts += [f"{numbers.count(planned.devices)} devices"] if planned.devices != 1 else []
    parts += [f"data: {planned.data}"] if planned.data else []
    parts += ["--data has none of the files looked for"] if planned.data_missing else []
    parts += [f"{name}={value}" for name, value in sorted(planned.config.items())]
    if cost is not None:
        declared = [
            f"{numbers.count(cost.flops)} FLOP" if cost.flops is not None else "",
            numbers.memory(cost.bytes) if cost.bytes is not None else "",
        ]
        parts.append(" and ".join(part for part in declared if part))
        parts += [f"message of {numbers.memory(cost.message_bytes)}"] if cost.message_bytes is not None else []
    parts += [f"no reference: {planned.no_reference}"] if planned.no_reference else []
    parts += list(case.record.notes) if case.record else [f"lost: {case.why_lost}"]
    return " · ".join(shorten(part, LONGEST_REASON) for part in parts if part)


def _row(variant: Variant, axis: LogAxis) -> Row:
    time, bounds = numbers.time_with_bounds(variant.time)
    contended = variant.time is not None and variant.is_contended
    cells = (
        name_cell(variant),
        Cell("baseline", tone=Tone.MUTED) if variant.is_baseline else _gain(variant),
        Cell(mark=_mark(variant, axis)),
        Cell(f"! {time}", bounds, Tone.WARN) if contended else Cell(time, bounds if variant.time else ""),
        Cell(numbers.count(variant.time.count if variant.time else None), tone=Tone.MUTED),
        Cell(numbers.time(variant.dispatch.estimate if variant.dispatch else None)),
        _break_even(variant),
        _rate(variant),
        Cell(numbers.error(variant.typical("max_error", "numerics"))),
        _notes(variant),
    )
    return Row(cells, variant.key)


def _gain(variant: Variant) -> Cell:
    cell = gain_cell(variant.speedup)
    return Cell(f"! {cell.text}", cell.detail, Tone.WARN) if variant.speedup and variant.has_contended_gain else cell


def _mark(variant: Variant, axis: LogAxis) -> IntervalMark | None:
    gain = variant.speedup
    if gain is None:
        return None
    low, high = numbers.usable(gain.low), numbers.usable(gain.high)
    point = axis.at(gain.estimate)
    return IntervalMark(
        low=point if low is None else axis.at(low),
        point=point,
        high=point if high is None else axis.at(high),
        origin=axis.at(1.0),
    )


def _break_even(variant: Variant) -> Cell:
    """Calls after which jit has paid for its compilation, against eager code of the same implementation."""
    wanted = (variant.planned.implementation, "eager")
    eager = next(
        (one for one in variant.case.variants if (one.planned.implementation, one.planned.mode) == wanted), None
    )
    if variant.planned.mode != "jit" or eager is None or variant.time is None or eager.time is None:
        return Cell()
    if eager.cold is None or variant.cold is None:
        return Cell(numbers.MISSING)
    gain = variant.speedup_over(eager)
    if gain is None or not statistics.differs(gain):
        return Cell("no difference", tone=Tone.MUTED)
    cold = eager.cold.estimate, variant.cold.estimate
    calls = statistics.break_even(eager.time.estimate, variant.time.estimate, *cold)
    if calls is None:
        return Cell("never", tone=Tone.WARN)
    return Cell(f"{numbers.count(calls)} {'call' if calls == 1 else 'calls'}")


def _rate(variant: Variant) -> Cell:
    cost, time = variant.case.planned.cost, variant.time
    if cost is None or time is None:
        return Cell(numbers.MISSING)
    declared = [(cost.flops, "FLOP/s", ""), (cost.bytes, "B/s", "")]
    if cost.message_bytes is not None:
        # What a collective does is to move data between devices; its rates in memory say nothing more.
        declared = [(cost.message_bytes, "B/s", " algorithm"), (cost.bus_bytes, "B/s", " bus")]
    known = [(numbers.usable(count) or 0.0, unit, kind) for count, unit, kind in declared]
    rates = [f"{numbers.amount(amount / time.estimate, unit)}{kind}" for amount, unit, kind in known if amount > 0]
    return Cell(rates[0], " ".join(rates[1:])) if rates else Cell(numbers.MISSING)


def _notes(variant: Variant) -> Cell:
    """Every status that explains a missing or doubtful number, then the notes of the probes."""
    if variant.case.is_lost and variant.status is Status.LOST:
        # The case's heading has the reason.
        return Cell(Status.LOST.value, tone=Tone.BAD)
    told_of = [
        told(outcome, *probes)
        for probes, outcome in variant.alike
        if outcome.status in INCOMPLETE or (outcome.status is not Status.OK and DECISIVE_PROBES.intersection(probes))
    ]
    parts = [*told_of, *variant.notes]
    if variant.time is None and not told_of and variant.planned.raises is None:  # whose error is its note
        parts.append(_why_untimed(variant))
    parts += [unreached_target(variant)]
    baseline = variant.case.baseline
    if variant.time is not None and not variant.is_baseline and (baseline is None or baseline.time is None):
        parts.append("no gain: the baseline variant has no time")
    tone = Tone.BAD if variant.status in INCOMPLETE else Tone.WARN if variant.does_not_fit else Tone.MUTED
    return Cell("; ".join(dict.fromkeys(part for part in parts if part)), tone=tone)


def _why_untimed(variant: Variant) -> str:
    if "timing" not in variant.case.place.run.manifest.settings.probes:
        return "not timed: the run was not asked to"
    return "no time recorded"
