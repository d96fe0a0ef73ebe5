"""Sweeps: how times, program size and memory grow with a size or the devices, and where an order turns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, permutations, takewhile

from jaxmeter.document import numbers
from jaxmeter.document.model import Cell, Column, Group, Part, Row, Table, Tone
from jaxmeter.harness.metrics.derived import STAGES, compare_paired, doubt_ratio
from jaxmeter.harness.metrics.metric import Metric, Reading
from jaxmeter.harness.metrics.reading import Case, Run, Variant
from jaxmeter.harness.metrics.statistics import Interval, differs
from jaxmeter.harness.metrics.table import METRICS, THROUGHPUT
from jaxmeter.harness.metrics.write import write_interval
from jaxmeter.harness.record import Param, Status
from jaxmeter.harness.record.cases import COMPILATION
from jaxmeter.harness.record.wording import counted, shorten

from ..compare.ratios import divide_readings
from ..compare.scaling import Scaling, find_slope, fit_exponent
from .cells import (
    LONGEST_REASON,
    NOTHING,
    describe_outcome,
    drop_empty_columns,
    has_interval,
    make_cell,
    make_interval_cell,
    name_level,
)
from .figures.points import TIME
from .runs import LONGEST_NAME, LONGEST_TERM

HINT = "0 is constant, 1 linear, 2 quadratic"
HINT_FOR_DEVICES = "a time's is at best −1 where they share one problem, 0 where each has its own"
"""How to read an exponent."""

MEASURES = tuple(
    METRICS[name] for name in ("compile_total_s", "execution_s", THROUGHPUT, "jaxpr_equations", "planned_peak_bytes")
)
"""What grows with a param: a column each in the table of exponents."""

MEASURES_OF_COMPILING = (MEASURES[0], *(METRICS[name] for name in STAGES[:-1]), *MEASURES[1:])
"""For workloads that measure compilation: its stages grow differently."""

RETURN, COMPILING = "return_s", "compile_total_s"

MOST_SENTENCES = 8
"""More would bury the figure that they are read with."""

Sizes = tuple[float, float]
"""Up to which size, and from which on."""

Line = Sequence[tuple[float, Variant]]
"""An implementation's variants by size, the smallest first."""

Pair = tuple[float, Variant, Variant]
"""A size, and two implementations' variants at it."""


def list_measures(sweep: Sweep) -> tuple[Metric, ...]:
    """Return the metrics whose growth is shown."""
    compiling = all(case.planned.measures == COMPILATION for _, case in sweep.cases)
    return MEASURES_OF_COMPILING if compiling else MEASURES


def make_sweep_part(sweep: Sweep) -> Part:
    """Return what grows how, and who overtakes whom: exponents and every value."""
    lines = {sweep.name(implementation): sweep.variants(implementation) for implementation in sweep.implementations}
    tables = tuple(table for table in (_exponents(sweep), _values(sweep)) if len(table.columns) > 1)
    notes = (_sentence(sweep), *describe_crossovers(sweep.param, lines), *_doubts(sweep))
    return Part(sweep.label, tables=tables, notes=notes)


def _doubts(sweep: Sweep) -> tuple[str, ...]:
    """Return what to mistrust in the fits."""
    notes = []
    for measure in list_measures(sweep):
        points = [reading for name in sweep.implementations for _, reading in sweep.list_readings(name, measure)]
        doubtful = sum(reading.contended for reading in points)
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
    """Return the exponent above those between sizes, which unfold with bounds where it has none; and its interval."""
    if fitted is None:
        return NOTHING, NOTHING
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
        *(Column(name_measure(measure), numeric=True) for measure in list_measures(sweep)),
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
    if not has_interval(reading.metric):
        return make_cell(reading)
    cell = make_interval_cell(reading)
    if reading.interval is not None and reading.contended:
        return Cell(f"! {cell.text}", f"{cell.detail} contended".strip(), Tone.WARN)
    return cell


def _sentence(sweep: Sweep) -> str:
    """Return `Execution time grows: loop as n^1.02 [0.98, 1.06].`, of the first measure with a clear exponent."""
    fitting = [(measure, fits) for measure in list_measures(sweep) if (fits := _fits(sweep, measure))]
    if not fitting:
        return "No exponent: fewer than three values of each."
    measure, fits = next((pair for pair in fitting if any(fitted.is_told for _, fitted in pair[1])), fitting[0])
    clear = "; ".join(
        f"{shorten(name, LONGEST_TERM)} as {_in_words(sweep.param, fitted)}" for name, fitted in fits if fitted.is_told
    )
    vague = ", ".join(shorten(name, LONGEST_TERM) for name, fitted in fits if not fitted.is_told)
    grows = f"{name_measure(measure)} grows: {clear}." if clear else ""
    rest = f"{name_measure(measure)}: no exponent is clear for {vague}." if vague else ""
    return " ".join(filter(None, (grows, rest)))


def _in_words(param: str, fitted: Scaling) -> str:
    """Return `n^1.02 [0.98, 1.06]`; without an interval `n^0.93 [0.90, 0.96] to n^1.02 [0.99, 1.05] between sizes`."""
    if fitted.exact:
        return f"{param}^{write_exponent(fitted)[0]}"
    ends = sorted(fitted.bounded, key=lambda slope: slope.estimate)
    powers = (f"{param}^{' '.join(write_interval(SCALING, slope))}" for slope in dict.fromkeys((ends[0], ends[-1])))
    return " to ".join(powers) + (" between sizes" if fitted.exponent.low is None else "")


def _fits(sweep: Sweep, measure: Metric) -> list[tuple[str, Scaling]]:
    """Return the power law of each implementation that has one, by the name of its variants."""
    return [(sweep.name(name), fitted) for name in sweep.implementations if (fitted := sweep.fit(name, measure))]


def name_measure(measure: Metric) -> str:
    """Return its title where nothing around it says more."""
    return f"{measure.title[:1].upper()}{measure.title[1:]}"


def describe_crossovers(param: str, lines: Mapping[str, Line]) -> tuple[str, ...]:
    """Return a sentence for each place where an order turns, the first MOST_SENTENCES of them.

    Args:
      param: What the sizes are values of.
      lines: By the name of an implementation's variants.
    """
    sentences = (*_overtaken(param, lines, TIME), *_overtaken(param, lines, COMPILING), *_outweighed(param, lines))
    left = len(sentences) - MOST_SENTENCES
    return (*sentences[:MOST_SENTENCES], *([f"+ {left} more"] if left > 0 else []))


def compare(variant: Variant, other: Variant, metric: str) -> int:
    """Return -1 where a variant takes less time than another, 1 where more, 0 where that is not sure."""
    ratio = _divide(variant, other, metric)
    if ratio is None or not differs(ratio) or (metric == TIME and doubt_ratio(variant, other)):
        return 0
    return -1 if ratio.estimate > 1 else 1


def _divide(variant: Variant, other: Variant, metric: str) -> Interval | None:
    """Return how many times less a variant takes: execution times paired by process, others over processes."""
    if metric == TIME:
        return compare_paired(variant, other)
    return divide_readings(other.read(metric), variant.read(metric), variant.settings)


def find_turn(sides: Sequence[tuple[float, int]]) -> Sizes | None:
    """Return up to which size it is -1, and from which on 1; None unless it is -1 at the first size and 1 at the last.

    Args:
      sides: By size, the smallest first; what lies between the two sizes may be anything.
    """
    below = list(takewhile(lambda side: side[1] < 0, sides))
    above = list(takewhile(lambda side: side[1] > 0, reversed(sides)))
    return (below[-1][0], above[-1][0]) if below and above else None


def _overtaken(param: str, lines: Mapping[str, Line], metric: str) -> Iterable[str]:
    """Yield `Execution time: loop:jit is ahead of scan:jit up to n = 100 (5× at 10), behind from 1 000 on (…)`."""
    turns = []
    for ahead, behind in permutations(lines, 2):
        turned = find_turn(
            [
                (size, compare(variant, other, metric))
                for size, variant, other in _pairs(lines[ahead], lines[behind], metric)
            ]
        )
        if turned is not None:
            turns.append((ahead, behind, turned))
    for leaders, others, (until, since) in _merged(turns):
        are = "is" if len(leaders) == 1 else "are"
        pairs = [_pairs(lines[ahead], lines[behind], metric) for ahead in leaders for behind in others]
        first = _speedups([row[0] for row in pairs], metric)
        last = _speedups([(size, other, variant) for size, variant, other in (row[-1] for row in pairs)], metric)
        yield (
            f"{METRICS[metric].heading}: {_all(leaders)} {are} ahead of {_all(others)} up to {param} = "
            f"{numbers.number(until)} ({first}), behind from {numbers.number(since)} on ({last})."
        )


def _merged(turns: Sequence[tuple[str, str, Sizes]]) -> list[tuple[list[str], list[str], Sizes]]:
    """Return who is ahead of whom; those that turn at the same sizes against the same name are merged."""
    by_ahead: dict[tuple[str, Sizes], list[str]] = {}
    by_behind: dict[tuple[str, Sizes], list[str]] = {}
    for ahead, behind, turned in turns:
        by_ahead.setdefault((ahead, turned), []).append(behind)
        by_behind.setdefault((behind, turned), []).append(ahead)
    if len(by_behind) < len(by_ahead):
        return [(names, [behind], turned) for (behind, turned), names in by_behind.items()]
    return [([ahead], names, turned) for (ahead, turned), names in by_ahead.items()]


def _pairs(line: Line, other: Line, metric: str) -> list[Pair]:
    """Return both variants at every size that both were measured at."""
    others = dict(other)
    return [
        (size, variant, others[size])
        for size, variant in line
        if size in others and all(side.read(metric).interval for side in (variant, others[size]))
    ]


def _speedups(pairs: Iterable[Pair], metric: str) -> str:
    """Return how many times faster variants are than others at some sizes: `1.2× to 3.4× [1.1, 3.6] at 10`.

    The bounds are the outermost of all; an order that turns is sure at its ends, so each has some.
    """
    sizes, ratios = set(), []
    for size, variant, other in pairs:
        ratio = _divide(variant, other, metric)
        sizes.add(size)
        ratios += [ratio] if ratio is not None else []
    least, most = min(ratio.estimate for ratio in ratios), max(ratio.estimate for ratio in ratios)
    lows, highs = [ratio.low or 0.0 for ratio in ratios], [ratio.high or 0.0 for ratio in ratios]
    _, bounds = numbers.speedup_with_bounds(Interval(min(lows), least, max(highs), len(ratios)))
    ends = dict.fromkeys(map(numbers.speedup, (least, most)))
    return f"{' to '.join(ends)} {bounds} at {', '.join(map(numbers.number, sorted(sizes)))}"


def _outweighed(param: str, lines: Mapping[str, Line]) -> Iterable[str]:
    """Yield `Return is more than half of the execution time up to n = 100, less from 10 000 on: tanh:jit`."""
    alike: dict[Sizes, list[str]] = {}
    for name, line in lines.items():
        turned = find_turn(
            [(size, _against_return(variant)) for size, variant in line if variant.read(RETURN).interval]
        )
        if turned is not None:
            alike.setdefault(turned, []).append(name)
    for (until, since), names in alike.items():
        sizes = f"up to {param} = {numbers.number(until)}, less from {numbers.number(since)} on"
        yield f"Time until return is more than half of the execution time {sizes}: {_all(names)}."


def _against_return(variant: Variant) -> int:
    """Return -1 where the execution time is less than twice the time until return, 1 where more, 0 where unsure."""
    time, until_return = variant.read(TIME).verdict_interval, variant.read(RETURN).verdict_interval
    if time is None or until_return is None or variant.read(TIME).contended:
        return 0
    if time.low is None or time.high is None or until_return.low is None or until_return.high is None:
        return 0
    return (time.low > 2 * until_return.high) - (time.high < 2 * until_return.low)


def _all(names: Sequence[str]) -> str:
    return ", ".join(shorten(name, LONGEST_TERM) for name in names)


PARAM = "n"
"""The size of a problem: what growth is told of, unless another param is named."""

SCALING = METRICS["compile_exponent"]
"""How the exponent of any metric is written."""

DEVICES = "devices"
FEWEST_SIZES = 3

MODES = ("jit", "aot", "mixed", "native", "eager")
"""One mode for each implementation, the first that it has: compiled as a whole where it can be."""


@dataclass(frozen=True)
class Sweep:
    """Cases of one workload that differ in one param only, by its value."""

    run: Run
    workload: str
    fixed: str
    cases: tuple[tuple[float, Case], ...]
    param: str = PARAM

    @property
    def label(self) -> str:
        """The workload, its param, what its cases share, and where they ran."""
        fixed = f" [{self.fixed}]" if self.fixed else ""
        return f"{shorten(self.workload + fixed, LONGEST_NAME)} over {self.param} · {self.run.label}"

    @cached_property
    def modes(self) -> dict[str, str]:
        """The mode that stands for each implementation, in the order of the plan."""
        modes: dict[str, str] = {}
        for planned in (variant.planned for _, case in self.cases for variant in case.shown):
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
            for variant in case.shown
            if variant.planned.implementation == implementation
            and variant.planned.mode == self.modes.get(implementation)
        )

    def list_readings(self, implementation: str, metric: Metric) -> tuple[tuple[float, Reading], ...]:
        """Return the sizes with a number above 0, each with it."""
        return tuple((n, reading) for n, _, reading, _ in self._read(implementation, metric))

    def fit(self, implementation: str, metric: Metric) -> Scaling | None:
        """How the metric grows through the points; None with fewer than three."""
        points = self._read(implementation, metric)
        sizes, values = [n for n, *_ in points], [interval.estimate for *_, interval in points]
        if len(set(sizes)) < FEWEST_SIZES:
            return None
        exact = all(reading.exact for _, _, reading, _ in points)
        try:
            shown, decisive = (
                fit_exponent(sizes, values, confidence=level, exact=exact)
                for level in (self.run.level, self.run.verdict_level)
            )
            exponent = replace(shown, verdict=decisive)
            slopes = tuple(_slope(*pair) for pair in pairwise(points) if pair[0][0] < pair[1][0])
        except (OverflowError, ValueError):
            # Sizes that differ by less than a logarithm can tell: there is no slope to give.
            return None
        return Scaling(exponent, slopes, exact)

    def _read(self, implementation: str, metric: Metric) -> list[_Point]:
        readings = ((n, variant, variant.read(metric.name)) for n, variant in self.variants(implementation))
        return [
            (n, variant, reading, interval)
            for n, variant, reading in readings
            if (interval := reading.interval) and interval.estimate > 0
        ]


_Point = tuple[float, Variant, Reading, Interval]
"""A size, and what was read there."""


def _slope(smaller: _Point, larger: _Point) -> Interval:
    """Between two sizes, which were measured in processes of their own."""
    (before, variant, below, low), (after, _, above, high) = smaller, larger
    ratio = divide_readings(above, below, variant.settings)
    return find_slope(ratio or Interval(None, high.estimate / low.estimate, None, 1), before, after)


def write_exponent(scaling: Scaling) -> tuple[str, str]:
    """(`1.02`, `[0.98, 1.06]`); an exact one has no bounds."""
    exponent, bounds = write_interval(SCALING, scaling.exponent)
    return exponent, numbers.MISSING if scaling.exact else bounds


def list_slopes(scaling: Scaling, *, bounds: bool = False) -> list[str]:
    """The exponents between neighbouring sizes: `0.93`; with bounds `0.93 [0.90, 0.96]`."""
    slopes = (write_interval(SCALING, slope) for slope in scaling.slopes)
    return [f"{text} {around}" if bounds and around != numbers.MISSING else text for text, around in slopes]


def find_sweeps(cases: Sequence[Case]) -> Iterable[Sweep]:
    """Every sweep of at least three different values: over n, over devices, then over any other param."""
    params = dict.fromkeys((PARAM, DEVICES, *(name for case in cases for name in case.planned.params)))
    sweeps = (sweep for param in params for sweep in group_cases(cases, param))
    return (sweep for sweep in sweeps if len({n for n, _ in sweep.cases}) >= FEWEST_SIZES)


def group_cases(cases: Iterable[Case], param: str = PARAM) -> Iterable[Sweep]:
    """All cases with such a param by what they have in common: run, workload and the other params."""
    groups: dict[tuple[str, str, str, str], list[tuple[float, Case]]] = {}
    for case in cases:
        n = _size(case.planned.params.get(param))
        if n is not None:
            fixed = ", ".join(f"{key}={value}" for key, value in sorted(case.planned.params.items()) if key != param)
            key = (case.planned.suite, case.planned.workload, fixed, case.run.name)
            groups.setdefault(key, []).append((n, case))
    for (_, workload, fixed, _), members in groups.items():
        by_size = tuple(sorted(members, key=lambda member: member[0]))
        yield Sweep(by_size[0][1].run, workload, fixed, by_size, shorten(param, LONGEST_TERM))


def _size(value: Param | None) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    size = numbers.usable(value)
    return size if size is not None and size > 0 else None
