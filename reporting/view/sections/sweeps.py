"""Sweeps: how times, program size and memory grow with n, devices or any other number, for each implementation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from harness.record import Param, Status, statistics
from harness.record.statistics import Growth, Interval

from .. import numbers
from ..text import one_of, shorten
from .crossovers import crossovers
from .measured import Case, Place, Variant
from .memory import planned_bytes
from .parts import Cell, Column, Figure, Group, Panel, Part, Point, Row, Section, Series, Table, Tone
from .words import LONGEST_NAME, LONGEST_REASON, LONGEST_TERM, level_of, measured_cell, told, without_empty

QUESTION = "What grows with the size of a problem, or with devices?"
PARAM = "n"
"""The size of a problem: what growth is told of, unless another param is named."""

DEVICES = "devices"
HINT = "0 is constant, 1 linear, 2 quadratic"
HINT_FOR_DEVICES = "a time's is at best −1 where they share one problem, 0 where each has its own"
"""How to read an exponent."""

FEWEST_SIZES = 3
WIDEST_TOLD = 1.0
"""An exponent between bounds further apart is in the table, and in no sentence."""

MODES = ("jit", "aot", "mixed", "native", "eager")
"""One mode for each implementation, the first that it has: compiled as a whole where it can be."""


@dataclass(frozen=True)
class Measure:
    """One panel of a sweep, `unit` as a panel has it; what `is_doubtful` is shown and fitted, but marked."""

    title: str
    unit: str
    value: Callable[[Variant], Interval | None]
    is_doubtful: Callable[[Variant], bool] = lambda variant: False


def _exact(value: float | None) -> Interval | None:
    return None if value is None else Interval(None, value, None, 1)


COMPILE = Measure("Trace + lower + compile", "s", lambda variant: variant.compile_total)
MEASURES = (
    COMPILE,
    Measure("Execution time", "s", lambda variant: variant.time, lambda variant: variant.is_contended),
    Measure("Jaxpr equations", "", lambda variant: _exact(variant.typical("jaxpr_equations", "compilation"))),
    Measure("Planned memory", "B", lambda variant: _exact(planned_bytes(variant))),
)


@dataclass(frozen=True)
class Sweep:
    """Cases of one workload that differ in one param only, by its value."""

    place: Place
    workload: str
    fixed: str
    cases: tuple[tuple[float, Case], ...]
    param: str = PARAM

    @property
    def label(self) -> str:
        """The workload, its param, what its cases share, and where they ran."""
        fixed = f" [{self.fixed}]" if self.fixed else ""
        return f"{shorten(self.workload + fixed, LONGEST_NAME)} over {self.param} · {self.place.label}"

    @cached_property
    def modes(self) -> dict[str, str]:
        """The mode that stands for each implementation, in the order of the plan."""
        modes: dict[str, str] = {}
        for planned in (variant.planned for _, case in self.cases for variant in case.variants):
            if planned.mode in MODES:
                before = modes.get(planned.implementation, planned.mode)
                modes[planned.implementation] = min(before, planned.mode, key=MODES.index)
        return modes

    @property
    def implementations(self) -> tuple[str, ...]:
        """In the order of the plan."""
        return tuple(self.modes)

    def name(self, implementation: str) -> str:
        """Of the implementation's variants, such as `loop:jit`."""
        return f"{implementation}:{self.modes[implementation]}"

    def variants(self, implementation: str) -> tuple[tuple[float, Variant], ...]:
        """The implementation's variants by size."""
        return tuple(
            (n, variant)
            for n, case in self.cases
            for variant in case.variants
            if variant.planned.implementation == implementation
            and variant.planned.mode == self.modes.get(implementation)
        )

    def points(self, implementation: str, measure: Measure) -> tuple[Point, ...]:
        """Where there is a value above 0, however wide its interval."""
        found = ((n, variant, measure.value(variant)) for n, variant in self.variants(implementation))
        return tuple(
            Point(n, value.estimate, _bounds(value), measure.is_doubtful(variant))
            for n, variant, value in found
            if value is not None and value.estimate > 0
        )

    def growth(self, implementation: str, measure: Measure) -> Growth | None:
        """The power law through the points; None with fewer than three."""
        points = self.points(implementation, measure)
        sizes, values = [point.x for point in points], [point.y for point in points]
        if len(set(sizes)) < FEWEST_SIZES:
            return None
        try:
            return statistics.growth(sizes, values, confidence=self.place.level)
        except (OverflowError, ValueError):
            # Sizes that differ by less than a logarithm can tell: there is no slope to give.
            return None


def sweeps(cases: Sequence[Case]) -> Section:
    """The section, with a figure for each workload that has at least three sizes."""
    found = tuple(find(cases))
    if not found:
        reason = f"Empty: no workload has {FEWEST_SIZES} or more values of a numeric param, the others being the same."
        return Section("sweeps", "Growth", QUESTION, reason)
    return Section("sweeps", "Growth", QUESTION, _answer(found), tuple(_part(sweep) for sweep in found))


def find(cases: Sequence[Case]) -> Iterable[Sweep]:
    """Every sweep of at least three different values: over n, over devices, then over any other param."""
    params = dict.fromkeys((PARAM, DEVICES, *(name for case in cases for name in case.planned.params)))
    found = (sweep for param in params for sweep in families(cases, param))
    return (sweep for sweep in found if len({n for n, _ in sweep.cases}) >= FEWEST_SIZES)


def families(cases: Iterable[Case], param: str = PARAM) -> Iterable[Sweep]:
    """All cases with such a param by what they have in common: run, workload and the other params."""
    groups: dict[tuple[str, str, str, str], list[tuple[float, Case]]] = {}
    for case in cases:
        n = _size(case.planned.params.get(param))
        if n is not None:
            fixed = ", ".join(f"{key}={value}" for key, value in sorted(case.planned.params.items()) if key != param)
            key = (case.planned.suite, case.planned.workload, fixed, case.place.run_id)
            groups.setdefault(key, []).append((n, case))
    for (_, workload, fixed, _), members in groups.items():
        by_size = tuple(sorted(members, key=lambda member: member[0]))
        yield Sweep(by_size[0][1].place, workload, fixed, by_size, shorten(param, LONGEST_TERM))


def _size(value: Param | None) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    number = numbers.usable(value)
    return number if number is not None and number > 0 else None


def _part(sweep: Sweep) -> Part:
    lines = {sweep.name(one): sweep.variants(one) for one in sweep.implementations}
    tables = tuple(table for table in (_exponents(sweep), _values(sweep)) if len(table.columns) > 1)
    return Part(sweep.label, _figure(sweep), tables, (*crossovers(sweep.param, lines), *_doubts(sweep)))


def _doubts(sweep: Sweep) -> tuple[str, ...]:
    """What to mistrust in the fits."""
    notes = []
    for measure in MEASURES:
        points = [point for name in sweep.implementations for point in sweep.points(name, measure)]
        doubtful = sum(point.doubtful for point in points)
        if doubtful:
            are = "is" if doubtful == 1 else "are"
            notes.append(
                f"{measure.title}: {doubtful} of {one_of(len(points), 'point')} {are} contended, hollow in the figure; "
                f"the fits use {'it' if doubtful == 1 else 'them'} like the others."
            )
    return tuple(notes)


def _bounds(interval: Interval) -> tuple[float, float] | None:
    low, high = numbers.usable(interval.low), numbers.usable(interval.high)
    return None if low is None or high is None or low <= 0 else (low, high)


def _figure(sweep: Sweep) -> Figure | None:
    panels = []
    for measure in MEASURES:
        lines = ((sweep.name(one), sweep.points(one, measure)) for one in sweep.implementations)
        series = tuple(Series(name, points) for name, points in lines if points)
        if series:
            panels.append(Panel(measure.title, sweep.param, measure.unit, series))
    if not panels:
        return None
    shown = f"{sweep.label}: {', '.join(panel.title.lower() for panel in panels)}"
    title = f"Logarithmic; vertical lines are the bounds of the {level_of([sweep.place])}."
    return Figure(title, f"{shown}, logarithmic. {_sentence(sweep)} The table below holds every value.", tuple(panels))


def _exponents(sweep: Sweep) -> Table:
    level = level_of([sweep.place])
    columns = [Column("Variant")]
    for measure in MEASURES:
        columns += [Column(measure.title, "exponent", numeric=True), Column(level, numeric=True)]
    rows = []
    for name in sweep.implementations:
        cells = [Cell(sweep.name(name))]
        for measure in MEASURES:
            fitted = sweep.growth(name, measure)
            exponent, bounds = numbers.exponent_with_bounds(fitted.exponent if fitted else None)
            cells += [Cell(exponent), Cell(bounds, tone=Tone.MUTED)]
        rows.append(Row(tuple(cells)))
    hint = HINT_FOR_DEVICES if sweep.param == DEVICES else HINT
    caption = f"Exponent b of the fitted power law {sweep.param}^b: {hint}."
    return without_empty(Table(caption, tuple(columns), (Group(tuple(rows)),)))


def _values(sweep: Sweep) -> Table:
    columns = (Column(sweep.param, numeric=True), *(Column(m.title, numeric=True) for m in MEASURES), Column("Notes"))
    groups = []
    for name in sweep.implementations:
        rows = [_value_row(n, variant) for n, variant in sweep.variants(name)]
        groups.append(Group(tuple(rows), sweep.name(name)))
    return without_empty(Table("The values behind the figure.", columns, tuple(groups), fold="All values"))


def _value_row(n: float, variant: Variant) -> Row:
    probe, outcome = variant.worst
    note = "" if outcome.status is Status.OK else shorten(told(outcome, probe), LONGEST_REASON)
    return Row(
        (
            Cell(numbers.number(n)),
            *(_value(measure, variant) for measure in MEASURES),
            Cell(note, tone=Tone.MUTED),
        )
    )


def _value(measure: Measure, variant: Variant) -> Cell:
    value = measure.value(variant)
    if measure.unit != "s":
        write = numbers.memory if measure.unit == "B" else numbers.count
        return Cell(write(value.estimate if value else None))
    cell = measured_cell(value)
    if value is not None and measure.is_doubtful(variant):
        return Cell(f"! {cell.text}", f"{cell.detail} contended".strip(), Tone.WARN)
    return cell


def _sentence(sweep: Sweep) -> str:
    """How the first measure grows of which that can be told: `Execution time grows as n^1.02 [0.98, 1.06] for loop`."""
    found = [(measure, fits) for measure in MEASURES if (fits := _fits(sweep, measure))]
    if not found:
        return "No exponent: fewer than three values of each."
    measure, fits = next((one for one in found if any(is_told(fitted) for _, fitted in one[1])), found[0])
    told = [(name, fitted) for name, fitted in fits if is_told(fitted)]
    vague = ", ".join(shorten(name, LONGEST_TERM) for name, fitted in fits if not is_told(fitted))
    parts = (
        f"{sweep.param}^{' '.join(numbers.exponent_with_bounds(fitted.exponent))} for {shorten(name, LONGEST_TERM)}"
        for name, fitted in told
    )
    grows = f"{measure.title} grows as {', '.join(parts)}." if told else ""
    rest = f"{measure.title}: no exponent can be told for {vague}." if vague else ""
    return " ".join(filter(None, (grows, rest)))


def _fits(sweep: Sweep, measure: Measure) -> list[tuple[str, Growth]]:
    """The power law of each implementation that has one, by the name of its variants."""
    return [(sweep.name(one), fitted) for one in sweep.implementations if (fitted := sweep.growth(one, measure))]


def is_told(fitted: Growth) -> bool:
    """Whether the exponent's interval is narrow enough to say anything, such as linear rather than quadratic."""
    low, high = fitted.exponent.low, fitted.exponent.high
    return low is not None and high is not None and high - low <= WIDEST_TOLD


def _answer(found: Sequence[Sweep]) -> str:
    more = f"; {one_of(len(found), 'sweep')} below" if len(found) > 1 else ""
    return f"{_sentence(found[0])} ({found[0].label}{more})"
