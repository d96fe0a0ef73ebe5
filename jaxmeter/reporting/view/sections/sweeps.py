"""Sweeps: how times, program size and memory grow with n, devices or any other number, for each implementation."""

from __future__ import annotations

from collections.abc import Sequence

from jaxmeter.harness.metrics.derived import STAGES
from jaxmeter.harness.metrics.metric import Metric, Reading, Summary
from jaxmeter.harness.metrics.reading import Variant
from jaxmeter.harness.metrics.table import METRICS, THROUGHPUT
from jaxmeter.harness.record import Status
from jaxmeter.harness.record.cases import COMPILATION

from ... import numbers
from ...compare.scaling import Scaling
from ...text import counted, shorten
from ...write import write_interval
from ..cells import drop_empty_columns, make_cell, make_interval_cell, name_level
from ..names import LONGEST_TERM
from ..page_model import Cell, Column, Group, Part, Row, Table
from ..reasons import LONGEST_REASON, describe_outcome
from ..sweeps import DEVICES, SCALING, Sweep, list_slopes, write_exponent
from ..tone import Tone
from .crossovers import describe_crossovers

HINT = "0 is constant, 1 linear, 2 quadratic"
HINT_FOR_DEVICES = "a time's is at best −1 where they share one problem, 0 where each has its own"
"""How to read an exponent."""

MEASURES = tuple(
    METRICS[name] for name in ("compile_total_s", "execution_s", THROUGHPUT, "jaxpr_equations", "planned_peak_bytes")
)
"""What grows with a param: a column each in the table of exponents."""

MEASURES_OF_COMPILING = (MEASURES[0], *(METRICS[name] for name in STAGES[:-1]), *MEASURES[1:])
"""For workloads that measure compilation: its stages grow differently."""


def list_measures(sweep: Sweep) -> tuple[Metric, ...]:
    """Return the metrics whose growth is shown."""
    compiling = all(case.planned.measures == COMPILATION for _, case in sweep.cases)
    return MEASURES_OF_COMPILING if compiling else MEASURES


def make_sweep_part(sweep: Sweep) -> Part:
    """What grows how, and who overtakes whom: figure, exponents, every value."""
    lines = {sweep.name(one): sweep.variants(one) for one in sweep.implementations}
    tables = tuple(table for table in (_exponents(sweep), _values(sweep)) if len(table.columns) > 1)
    notes = (_sentence(sweep), *describe_crossovers(sweep.param, lines), *_doubts(sweep))
    return Part(sweep.label, tables=tables, notes=notes)


def _doubts(sweep: Sweep) -> tuple[str, ...]:
    """What to mistrust in the fits."""
    notes = []
    for measure in list_measures(sweep):
        points = [one for name in sweep.implementations for _, one in sweep.list_readings(name, measure)]
        doubtful = sum(one.contended for one in points)
        if doubtful:
            are = "is" if doubtful == 1 else "are"
            notes.append(
                f"{name_measure(measure)}: {doubtful} of {counted(len(points), 'point')} {are} contended, hollow in "
                f"the figure; the fits use {'it' if doubtful == 1 else 'them'} like the others."
            )
    return tuple(notes)


def _exponents(sweep: Sweep) -> Table:
    level = name_level([sweep.run])
    columns = [Column("Variant")]
    for measure in list_measures(sweep):
        columns += [Column(name_measure(measure), "exponent; between sizes", numeric=True), Column(level, numeric=True)]
    rows = []
    for name in sweep.implementations:
        cells = [Cell(sweep.name(name))]
        for measure in list_measures(sweep):
            cells += _exponent(sweep.fit(name, measure))
        rows.append(Row(tuple(cells)))
    hint = HINT_FOR_DEVICES if sweep.param == DEVICES else HINT
    caption = (
        f"Exponent b of {sweep.param}^b: {hint}. Small, those between neighbouring sizes, where no constant part could "
        "be set apart: it bends them."
    )
    return drop_empty_columns(Table(caption, tuple(columns), (Group(tuple(rows)),)))


def _exponent(fitted: Scaling | None) -> tuple[Cell, Cell]:
    """The exponent above those between sizes, theirs to unfold where it has no interval of its own; and its own."""
    if fitted is None:
        return Cell(numbers.MISSING), Cell(numbers.MISSING, tone=Tone.MUTED)
    exponent, bounds = write_exponent(fitted)
    slopes = list_slopes(fitted) if fitted.may_bend else []
    vague = fitted.exponent.low is None
    fold = "\n".join(list_slopes(fitted, bounds=True)) if vague else ""
    return (
        Cell(exponent, ", ".join(slopes), fold=fold, fold_title="intervals between sizes"),
        Cell("exact" if fitted.exact else bounds, tone=Tone.MUTED),
    )


def _values(sweep: Sweep) -> Table:
    columns = (
        Column(sweep.param, numeric=True),
        *(Column(name_measure(one), numeric=True) for one in list_measures(sweep)),
        Column("Notes"),
    )
    groups = []
    for name in sweep.implementations:
        rows = [_value_row(n, variant, list_measures(sweep)) for n, variant in sweep.variants(name)]
        groups.append(Group(tuple(rows), sweep.name(name)))
    return drop_empty_columns(Table("The values behind the figure.", columns, tuple(groups), fold="All values"))


def _value_row(n: float, variant: Variant, measures: Sequence[Metric]) -> Row:
    probe, outcome = variant.worst
    note = "" if outcome.status is Status.OK else shorten(describe_outcome(outcome, probe), LONGEST_REASON)
    return Row(
        (
            Cell(numbers.number(n)),
            *(_value(variant.read(measure.name)) for measure in measures),
            Cell(note, tone=Tone.MUTED),
        )
    )


def _value(reading: Reading) -> Cell:
    if reading.metric.summary not in (Summary.TIMING, Summary.PROCESSES):
        return make_cell(reading)
    cell = make_interval_cell(reading)
    if reading.interval is not None and reading.contended:
        return Cell(f"! {cell.text}", f"{cell.detail} contended".strip(), Tone.WARN)
    return cell


def _sentence(sweep: Sweep) -> str:
    """How the first measure grows of which that can be told: `Execution time grows: loop as n^1.02 [0.98, 1.06].`."""
    found = [(measure, fits) for measure in list_measures(sweep) if (fits := _fits(sweep, measure))]
    if not found:
        return "No exponent: fewer than three values of each."
    measure, fits = next((one for one in found if any(fitted.is_told for _, fitted in one[1])), found[0])
    clear = "; ".join(
        f"{shorten(name, LONGEST_TERM)} as {_in_words(sweep.param, fitted)}" for name, fitted in fits if fitted.is_told
    )
    vague = ", ".join(shorten(name, LONGEST_TERM) for name, fitted in fits if not fitted.is_told)
    grows = f"{name_measure(measure)} grows: {clear}." if clear else ""
    rest = f"{name_measure(measure)}: no exponent is clear for {vague}." if vague else ""
    return " ".join(filter(None, (grows, rest)))


def _in_words(param: str, fitted: Scaling) -> str:
    """`n^1.02 [0.98, 1.06]`; without an interval `n^0.93 [0.90, 0.96] to n^1.02 [0.99, 1.05] between sizes`."""
    if fitted.exact:
        return f"{param}^{write_exponent(fitted)[0]}"
    ends = sorted(fitted.bounded, key=lambda one: one.estimate)
    powers = (f"{param}^{' '.join(write_interval(SCALING, one))}" for one in dict.fromkeys((ends[0], ends[-1])))
    return " to ".join(powers) + (" between sizes" if fitted.exponent.low is None else "")


def _fits(sweep: Sweep, measure: Metric) -> list[tuple[str, Scaling]]:
    """The power law of each implementation that has one, by the name of its variants."""
    return [(sweep.name(one), fitted) for one in sweep.implementations if (fitted := sweep.fit(one, measure))]


def name_measure(measure: Metric) -> str:
    """Its title where nothing around it says more."""
    return f"{measure.title[:1].upper()}{measure.title[1:]}"
