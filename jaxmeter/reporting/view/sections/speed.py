"""Speed: every planned case and variant, led by the paired speedup over its baseline variant."""

from __future__ import annotations

from collections.abc import Sequence

from jaxmeter.harness.metrics.across import DECISIVE_PROBES
from jaxmeter.harness.metrics.metric import Lack, Reading
from jaxmeter.harness.metrics.reading import Case, Run, Variant
from jaxmeter.harness.metrics.table import SHARES_OF_PEAK, THROUGHPUT
from jaxmeter.harness.record import INCOMPLETE, Status
from jaxmeter.harness.record.wording import write_options

from ... import numbers
from ...text import shorten
from ...write import write, write_reading
from ..cases import group_alike, label_case, list_notes
from ..cells import find_speedup_tone, make_cell, make_column, make_name_cell, make_time_cells, name_level
from ..doubts import explain_doubts, find_doubts
from ..headlines import describe_largest_speedup
from ..jit_speedups import describe_jit
from ..keys import key_of_case, key_of_variant
from ..page_model import Cell, Column, Group, Part, Row, Section, Table
from ..reasons import LONGEST_REASON, describe_outcome, describe_unreached_target
from ..tone import Tone

QUESTION = "How fast is each way to run it?"

TIME = "execution_s"
PIPELINED, BY_QUEUEING = "pipelined_s", "pipelined_speedup"
QUEUED = (
    "Pipelined: time a call where several calls are queued and waited for once; below, how many times longer a call "
    "takes that is waited for by itself. "
)
NORMALISED = "normalised_s"
REFERENCE = "Normalised: the time divided by that of the calibration loop next to each block, times the loop's median. "
OF_FIRST_RUN = "Runs of one machine are normalised to its first run with the same calibration loop. "
COLLECTIVES = "Algorithm and bus: bandwidths of a collective, as NCCL's tests define them."
RATES = (THROUGHPUT, "achieved_flops", "achieved_bandwidth")
RATES_OF_COLLECTIVES = ("algorithm_bandwidth", "bus_bandwidth")
"""What a collective does is to move data between devices; its rates in memory say nothing more."""


def make_speed_section(runs: Sequence[Run], cases: Sequence[Case]) -> Section:
    """The section, with a row for every planned variant."""
    if not any(case.shown for case in cases):
        return Section("speed", "Speed", QUESTION, "No variant was planned.")
    level = name_level(runs)
    fair = any(variant.read(NORMALISED).interval for case in cases for variant in case.shown)
    queued = any(variant.read(PIPELINED).interval for case in cases for variant in case.shown)
    brought = any(run.baseline is not None for run in runs)
    columns = (
        Column("Variant"),
        make_column("speedup", detail=level),
        make_column(TIME, "Time", level),
        *([make_column(NORMALISED, "Normalised", level)] if fair else []),
        Column("n", numeric=True),
        make_column("return_s"),
        *([make_column(PIPELINED, "Pipelined", "by queueing")] if queued else []),
        make_column("break_even_calls"),
        Column("Rate", "as declared", numeric=True),
        Column("Of the peak", "FLOP/s, B/s", numeric=True),
        make_column("max_error"),
        Column("Notes"),
    )
    groups = tuple(_group(case, fair, queued) for case in cases)
    caption = (
        "Speedup: the baseline variant's time over this variant's, paired within each process; above 1× is faster. "
        f"[a, b]: {level}. a to b: the fastest and the slowest process, where there are too few for an interval. "
        f"{REFERENCE if fair else ''}{OF_FIRST_RUN if brought else ''}"
        "n: processes, each a fresh one. !: see the notes. A wrong result has no speed. "
        f"{QUEUED if queued else ''}"
        f"{COLLECTIVES if any(map(_is_collective, cases)) else ''}"
    )
    part = Part(tables=(Table(caption, columns, groups),))
    return Section("speed", "Speed", QUESTION, describe_speed(cases), (part,))


def describe_speed(cases: Sequence[Case]) -> str:
    """What jit is worth among all, and the largest speedup."""
    if not (largest := describe_largest_speedup(cases)):
        timed = any(variant.read(TIME).interval for case in cases for variant in case.shown)
        return (
            "Times without a speedup: no variant was paired with its baseline variant."
            if timed
            else "Nothing was timed."
        )
    return f"{describe_jit(cases)}. {largest}"


def _group(case: Case, fair: bool, queued: bool) -> Group:
    rows = tuple(_row(variant, fair, queued) for variant in case.shown)
    return Group(rows, label_case(case), _detail(case), key_of_case(case))


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
    parts += [f"{numbers.count(planned.items)} {planned.items_unit} a call"] if planned.items is not None else []
    parts += [f"no reference: {planned.no_reference}"] if planned.no_reference else []
    parts += list(case.record.notes) if case.record else [f"lost: {case.why_lost}"]
    return " · ".join(shorten(part, LONGEST_REASON) for part in parts if part)


def _row(variant: Variant, fair: bool, queued: bool) -> Row:
    time, (raw, normalised) = variant.read(TIME), make_time_cells(variant)
    cells = (
        make_name_cell(variant),
        Cell("baseline", tone=Tone.MUTED) if variant.is_baseline else _speedup(variant),
        raw,
        *([normalised] if fair else []),
        Cell(numbers.count(time.interval.count if time.interval else None), tone=Tone.MUTED),
        make_cell(variant.read("return_s")),
        *([make_cell(variant.read(PIPELINED), _by_queueing(variant))] if queued else []),
        _break_even(variant.read("break_even_calls")),
        _rate(variant),
        _share_of_peak(variant),
        make_cell(variant.read("max_error")),
        _notes(variant),
    )
    return Row(cells, key_of_variant(variant))


def _why_no_fair_time(variant: Variant) -> str:
    """Why there is no normalised time, where the run has such times and the variant was timed."""
    fair = variant.read("normalised_s")
    if fair.interval is not None or variant.case.run.pool.reference is None or variant.read(TIME).interval is None:
        return ""
    return "" if fair.fault is None else f"no normalised time: {fair.fault.reason}"


def _speedup(variant: Variant) -> Cell:
    speedup = variant.read("speedup")
    text, bounds = write_reading(speedup)
    if speedup.interval is None:
        return Cell(text, tone=Tone.MUTED)
    is_doubted = bool(find_doubts(variant, speedup))
    return (
        Cell(f"! {text}", bounds, Tone.WARN) if is_doubted else Cell(text, bounds, find_speedup_tone(speedup.interval))
    )


def _by_queueing(variant: Variant) -> str:
    """`1.27× [1.25, 1.30]`; empty where no calls were queued."""
    speedup = variant.read(BY_QUEUEING)
    return "" if speedup.interval is None else " ".join(write_reading(speedup))


def _break_even(calls: Reading) -> Cell:
    """Calls after which jit has paid for its compilation, against eager code of the same implementation."""
    if calls.interval is not None:
        text = numbers.count_in_range(calls.interval, "call")
        detail = "no interval" if calls.interval.low is None else ""
        return Cell(f"! {text}", detail, Tone.WARN) if calls.contended else Cell(text, detail)
    lack = None if calls.fault is None else calls.fault.lack
    if lack is Lack.NO_DIFFERENCE:
        return Cell("no difference", tone=Tone.MUTED)
    if lack is Lack.NEVER:
        return Cell("never", tone=Tone.WORSE)
    # Where there is no time, the column of times shows it.
    is_elsewhere = lack is Lack.NOT_DEFINED or (calls.fault is not None and calls.fault.metric == TIME)
    return Cell() if is_elsewhere else Cell(numbers.MISSING)


def _is_collective(case: Case) -> bool:
    return case.planned.cost is not None and case.planned.cost.message_bytes is not None


def _rate(variant: Variant) -> Cell:
    is_collective = _is_collective(variant.case)
    readings = [variant.read(name) for name in (RATES_OF_COLLECTIVES if is_collective else RATES)]
    rates = [
        f"{write(rate.metric, rate.estimate)}{f' {rate.metric.title}' if is_collective else ''}"
        for rate in readings
        if rate.interval is not None
    ]
    return Cell(rates[0], " ".join(rates[1:])) if rates else Cell(numbers.MISSING)


def _share_of_peak(variant: Variant) -> Cell:
    """Of FLOP/s, above that of the bandwidth; none above a peak, as of data that stay in a cache."""
    flops, moved = (write(one.metric, None if one.doubt else one.estimate) for one in map(variant.read, SHARES_OF_PEAK))
    return Cell(flops, "" if moved == numbers.MISSING else moved)


def _notes(variant: Variant) -> Cell:
    """Every status that explains a missing or doubtful number, then the notes of the probes."""
    if variant.case.is_lost and variant.status is Status.LOST:
        # The case's heading has the reason.
        return Cell(Status.LOST.value, tone=Tone.BAD)
    told = [
        describe_outcome(outcome, *probes)
        for probes, outcome in group_alike(variant)
        if outcome.status in INCOMPLETE or (outcome.status is not Status.OK and DECISIVE_PROBES.intersection(probes))
    ]
    options = write_options(variant.planned.compiler_options)
    parts = [*told, *explain_doubts(variant), f"compiled with {options}" if options else "", *list_notes(variant)]
    time = variant.read(TIME)
    if time.interval is None and not told and variant.planned.raises is None:  # whose error is its note
        parts.append(_why_untimed(variant, time))
    doubt = variant.read("speedup").doubt
    parts += [f"speedup not to be trusted: {doubt}" if doubt else "", describe_unreached_target(variant)]
    parts.append(_why_no_fair_time(variant))
    over_eager = variant.read("break_even_calls").doubt
    parts += [f"speedup over eager code not to be trusted: {over_eager}" if over_eager and not doubt else ""]
    baseline = variant.case.baseline
    no_speedup = baseline is None or baseline.read(TIME).interval is None
    if time.interval is not None and not variant.is_baseline and no_speedup:
        parts.append("no speedup: the baseline variant has no time")
    tone = Tone.BAD if variant.status in INCOMPLETE else Tone.WARN if variant.is_too_large else Tone.MUTED
    return Cell("; ".join(dict.fromkeys(part for part in parts if part)), tone=tone)


def _why_untimed(variant: Variant, time: Reading) -> str:
    is_asked = time.metric.probe in variant.settings.probes
    return "no time recorded" if is_asked else "not timed: the run was not asked to"
