"""Speed: every planned case and variant, led by the paired speedup over its baseline variant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxmeter.document import numbers
from jaxmeter.document.model import Cell, Column, Table, Tone
from jaxmeter.harness.metrics.across import DECISIVE_PROBES
from jaxmeter.harness.metrics.metric import Lack, Reading
from jaxmeter.harness.metrics.reading import Case, Variant
from jaxmeter.harness.metrics.table import SHARES_OF_PEAK, THROUGHPUT
from jaxmeter.harness.metrics.write import write, write_reading
from jaxmeter.harness.record import INCOMPLETE, Status
from jaxmeter.harness.record.wording import shorten, write_options

from ..cells import (
    LONGEST_REASON,
    NOTHING,
    CaseSection,
    VariantColumn,
    describe_outcome,
    describe_unreached_target,
    explain_doubts,
    find_doubts,
    find_speedup_tone,
    make_cell,
    make_column,
    make_time_cells,
    make_variant_table,
    name_level,
    read_column,
)
from ..figures.points import TIME
from ..runs import group_alike, label_case, list_notes

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


def _list_tables(cases: Sequence[Case]) -> Iterator[Table]:
    runs = [case.run for case in cases]
    variants = [variant for case in cases for variant in case.shown]
    level = name_level(runs)
    is_normalised = any(variant.read(NORMALISED).interval for variant in variants)
    is_queued = any(variant.read(PIPELINED).interval for variant in variants)
    caption = (
        "Speedup: the baseline variant's time over this variant's, paired within each process; above 1× is faster. "
        f"[a, b]: {level}. a to b: the fastest and the slowest process, where there are too few for an interval. "
        f"{REFERENCE if is_normalised else ''}{OF_FIRST_RUN if any(run.baseline is not None for run in runs) else ''}"
        "n: processes, each a fresh one. !: see the notes. A wrong result has no speed. "
        f"{QUEUED if is_queued else ''}"
        f"{COLLECTIVES if any(map(_is_collective, cases)) else ''}"
    )
    columns = (
        VariantColumn(make_column("speedup", detail=level), _write_speedup),
        VariantColumn(make_column(TIME, "Time", level), lambda variant: make_time_cells(variant)[0]),
        VariantColumn(make_column(NORMALISED, "Normalised", level), lambda variant: make_time_cells(variant)[1]),
        VariantColumn(Column("n", numeric=True), _count_processes),
        read_column("return_s", with_interval=False),
        VariantColumn(make_column(PIPELINED, "Pipelined", "by queueing"), _write_pipelined),
        VariantColumn(make_column("break_even_calls"), _write_break_even),
        VariantColumn(Column("Rate", "as declared", numeric=True), _write_rate),
        VariantColumn(Column("Of the peak", "FLOP/s, B/s", numeric=True), _write_share_of_peak),
        "max_error",
    )
    yield make_variant_table(cases, caption, columns, detail=_describe_case)


def _list_notes(cases: Sequence[Case]) -> Iterator[str]:
    """Yield every status that explains a missing or doubtful number and the notes of the probes, each once."""
    alike: dict[str, list[str]] = {}
    several = sum(bool(case.shown) for case in cases) > 1
    for case in cases:
        for variant in case.shown:
            if note := explain_numbers(variant):
                name = variant.planned.name
                alike.setdefault(note, []).append(f"{name} · {label_case(case)}" if several else name)
    yield from (f"{', '.join(names)}: {note}" for note, names in alike.items())


def _describe_case(case: Case) -> str:
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


def _count_processes(variant: Variant) -> Cell:
    interval = variant.read(TIME).interval
    return Cell(numbers.count(None if interval is None else interval.count), tone=Tone.MUTED)


def _explain_no_normalised_time(variant: Variant) -> str:
    """Return why there is no normalised time, where the run has such times and the variant was timed."""
    fair = variant.read("normalised_s")
    if fair.interval is not None or variant.case.run.pool.reference is None or variant.read(TIME).interval is None:
        return ""
    return "" if fair.fault is None else f"no normalised time: {fair.fault.reason}"


def _write_speedup(variant: Variant) -> Cell:
    if variant.is_baseline:
        return Cell("baseline", tone=Tone.MUTED)
    speedup = variant.read("speedup")
    text, bounds = write_reading(speedup)
    if speedup.interval is None:
        return Cell(text, tone=Tone.MUTED)
    is_doubted = bool(find_doubts(variant, speedup))
    return (
        Cell(f"! {text}", bounds, Tone.WARN) if is_doubted else Cell(text, bounds, find_speedup_tone(speedup.interval))
    )


def _write_pipelined(variant: Variant) -> Cell:
    """Return the pipelined time, and below it what queueing is worth: `1.27× [1.25, 1.30]`."""
    speedup = variant.read(BY_QUEUEING)
    return make_cell(variant.read(PIPELINED), "" if speedup.interval is None else " ".join(write_reading(speedup)))


def _write_break_even(variant: Variant) -> Cell:
    """Return the calls after which jit has paid for its compilation, against eager code of the same implementation."""
    calls = variant.read("break_even_calls")
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
    return Cell() if is_elsewhere else NOTHING


def _is_collective(case: Case) -> bool:
    return case.planned.cost is not None and case.planned.cost.message_bytes is not None


def _write_rate(variant: Variant) -> Cell:
    is_collective = _is_collective(variant.case)
    readings = [variant.read(name) for name in (RATES_OF_COLLECTIVES if is_collective else RATES)]
    rates = [
        f"{write(rate.metric, rate.estimate)}{f' {rate.metric.title}' if is_collective else ''}"
        for rate in readings
        if rate.interval is not None
    ]
    return Cell(rates[0], " ".join(rates[1:])) if rates else NOTHING


def _write_share_of_peak(variant: Variant) -> Cell:
    """Return the share of FLOP/s, above that of the bandwidth; none above a peak, as of data that stay in a cache."""
    shares = map(variant.read, SHARES_OF_PEAK)
    flops, moved = (write(share.metric, None if share.doubt else share.estimate) for share in shares)
    return Cell(flops, "" if moved == numbers.MISSING else moved)


def explain_numbers(variant: Variant) -> str:
    """Return why a number is missing or doubtful, then the notes of the probes."""
    if variant.case.is_lost and variant.status is Status.LOST:
        # The case's heading has the reason.
        return Status.LOST.value
    outcomes = [
        describe_outcome(outcome, *probes)
        for probes, outcome in group_alike(variant)
        if outcome.status in INCOMPLETE or (outcome.status is not Status.OK and DECISIVE_PROBES.intersection(probes))
    ]
    options = write_options(variant.planned.compiler_options)
    parts = [*outcomes, *explain_doubts(variant), f"compiled with {options}" if options else "", *list_notes(variant)]
    time = variant.read(TIME)
    if time.interval is None and not outcomes and variant.planned.raises is None:  # whose error is its note
        parts.append(_explain_no_time(variant, time))
    doubt = variant.read("speedup").doubt
    parts += [f"speedup not to be trusted: {doubt}" if doubt else "", describe_unreached_target(variant)]
    parts.append(_explain_no_normalised_time(variant))
    over_eager = variant.read("break_even_calls").doubt
    parts += [f"speedup over eager code not to be trusted: {over_eager}" if over_eager and not doubt else ""]
    baseline = variant.case.baseline
    no_speedup = baseline is None or baseline.read(TIME).interval is None
    if time.interval is not None and not variant.is_baseline and no_speedup:
        parts.append("no speedup: the baseline variant has no time")
    return "; ".join(dict.fromkeys(part for part in parts if part))


def _explain_no_time(variant: Variant, time: Reading) -> str:
    is_asked = time.metric.probe in variant.settings.probes
    return "no time recorded" if is_asked else "not timed: the run was not asked to"


SECTION = CaseSection(1, "speed", "Speed", "How fast is each way to run it?", _list_tables, _list_notes)
