"""Runs of a case over time: earlier runs of a machine, and a heat map of what each release changed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from jaxmeter.document import numbers
from jaxmeter.document.model import Cell, Column, Group, Part, Row, Section, Table, Tone
from jaxmeter.harness.metrics.reading import Case, Run, Variant
from jaxmeter.harness.metrics.statistics import Interval, take_logarithm
from jaxmeter.harness.record.wording import counted, shorten

from ...compare.verdicts import Change, JudgedReport, Verdict
from ...history import ChangePoint
from ...text import by_numbers
from ..cells import make_column, make_interval_cell, make_time_cells
from ..changes import write_effect
from ..comparisons import MeasuredPair, write_change_point, write_levels
from ..figures.curves import draw_history
from ..figures.points import name_case
from ..page_model import Card, ReleasesView
from ..runs import LONGEST_NAME, History, Key, make_fragment, name_rows, name_starts

FEWEST_PAIRS = 2
"""Of one pair the comparison says all."""

MOST_ROWS, MOST_CURVES = 60, 5

SHADES = (0.03, 0.08, 0.20, numbers.LEAST_FACTOR - 1)
"""Sizes of a change from which on a cell is darker."""

OF_RELEASES, OF_RUNS = ("Releases", "What did each release change?"), ("Runs", "What did each run change?")
HOW_TO_READ = (
    "Confirmed changes of a time from run to run: slower orange, faster green, darker from 3, 8 and 20 % and 2× on. "
    "Blank: no change is confirmed; n/c: not compared."
)
SINCE = "A column “since” compares two runs directly, so it includes changes too small to confirm in one step."
OF_SPANS = "In brackets: not confirmed; !: contradicts the row's steps, rely on neither."

NOT_COMPARED = Cell("n/c", tone=Tone.MUTED, hint="not compared: not timed in both runs")


def make_releases_view(pairs: Sequence[MeasuredPair], history: History) -> ReleasesView | None:
    """Return the view; None of fewer than two pairs.

    Args:
      history: By the fragment of a case, for each machine the case in all runs.
    """
    if len(pairs) < FEWEST_PAIRS:
        return None
    steps = _order(pairs)
    rows, left = _make_rows(steps)
    times = [change for pair in steps if not pair.is_span for change in pair.changes.times]
    confirmed = sum(change.verdict.is_confirmed for change in times)
    how = next((change.condition for change in times if change.condition), "")
    answer = (
        f"{counted(confirmed, 'confirmed change')} in {counted(len(times), 'comparison')}{f', {how}' if how else ''}."
    )
    answer += _describe_most_changed(steps) + _describe_conditions(steps)
    names = _name_steps(steps)
    columns = (Column("Case"), *(Column(name, detail, numeric=True) for name, detail in names))
    short, question = OF_RUNS if _are_of_one_release(pairs) else OF_RELEASES
    start = _find_common_start(steps)
    each = f"a column for each run, compared with {start}." if start else "a column for each run."
    table = Table(f"A row for each variant that changed, {each}", columns, (Group(tuple(rows)),))
    since = SINCE if any(detail for _, detail in names) else ""
    of_spans = OF_SPANS if any(step.is_span for step in steps) else ""
    how_to_read = " ".join(filter(None, (HOW_TO_READ, since, of_spans)))
    note = f"{counted(left, 'more row')} in the list of changes." if left else ""
    conditions = _list_conditions(steps)
    return ReleasesView(
        short, question, answer, how_to_read, table, conditions, note, tuple(_list_histories(steps, history))
    )


def choose_reports(pairs: Sequence[MeasuredPair], others: Sequence[JudgedReport]) -> tuple[JudgedReport, ...]:
    """Return each report of a release once: as the pair says that has the fewest other releases between its two.

    A pair farther apart does not replace it, since other releases change the program, too.

    Args:
      others: What comparisons of newest runs say; they may be of runs that were measured apart.
    """
    names = sorted({_name_run(run) for pair in pairs for run in (pair.before, pair.after)}, key=by_numbers)
    places = {name: place for place, name in enumerate(names)}

    def rank(report: JudgedReport) -> tuple[int, bool]:
        before, after = (places.get(release, 0) for release in report.releases)
        return abs(after - before) or len(places), report.ours is None

    closest: dict[tuple[str, str, str, str], JudgedReport] = {}
    for report in sorted((*others, *(report for pair in pairs for report in pair.changes.reports)), key=rank):
        closest.setdefault((report.report.source, report.report.after, report.report.metric, report.case), report)
    return tuple(
        sorted(closest.values(), key=lambda report: by_numbers(f"{report.report.before} {report.report.after}"))
    )


def gather_steps(pairs: Sequence[MeasuredPair]) -> dict[tuple[str, str], tuple[tuple[str, Change], ...]]:
    """Return by suite and case the confirmed changes of times between neighbours, each with the later release."""
    by_case: dict[tuple[str, str], list[tuple[str, Change]]] = {}
    steps = [step for step in _order(pairs) if not step.is_span]
    for step, (name, _) in zip(steps, _name_steps(steps), strict=True):
        for change in step.changes.times:
            if change.verdict.is_confirmed and change.effect is not None:
                by_case.setdefault((change.suite, change.case), []).append((name, change))
    return {key: tuple(changes) for key, changes in by_case.items()}


def _order(pairs: Sequence[MeasuredPair]) -> list[MeasuredPair]:
    """Return neighbours by the name of the later run, then pairs of releases that others lie between."""
    of_one = _are_of_one_release(pairs)
    name = _name_by_time([run for pair in pairs for run in (pair.before, pair.after)]) if of_one else _name_run
    by_sides: dict[tuple[str, str], MeasuredPair] = {}
    for pair in sorted(pairs, key=lambda pair: pair.after.manifest.started):
        sides = name(pair.before), name(pair.after)
        by_sides[sides] = replace(pair, names=sides)  # a second measurement takes the first one's place
    names = sorted({name for sides in by_sides for name in sides}, key=by_numbers)
    marked = [
        replace(pair, is_span=not of_one and abs(names.index(after) - names.index(before)) > 1)
        for (before, after), pair in by_sides.items()
    ]
    return sorted(marked, key=lambda pair: (pair.is_span, by_numbers(pair.names[1]), pair.names[0]))


def _are_of_one_release(pairs: Sequence[MeasuredPair]) -> bool:
    """Return whether runs of a release are compared with each other, as nightly runs are."""
    return any(_name_run(pair.before) == _name_run(pair.after) for pair in pairs)


def _name_run(run: Run) -> str:
    return run.environment.packages.get("jax", run.manifest.started[:10])


def _name_by_time(runs: Sequence[Run]) -> Callable[[Run], str]:
    """Return how runs are named: by their starts."""
    names = name_starts(run.manifest.started for run in runs)
    return lambda run: names[run.manifest.started]


def _name_steps(steps: Sequence[MeasuredPair]) -> list[tuple[str, str]]:
    """Return the heading of each column: the later run, and the earlier one where it is not the one before.

    Steps that all begin with one run have a caption for it.
    """
    if _find_common_start(steps):
        return [(step.names[1], "") for step in steps]
    names, last = [], ""
    for step in steps:
        before, after = step.names
        is_next = not step.is_span and (before == last or not last)
        names.append((after, "" if is_next else f"since {before}"))
        last = after
    return names


def _find_common_start(steps: Sequence[MeasuredPair]) -> str:
    """Return the earlier run of all steps, such as the baseline of nightly runs; empty where there are several."""
    starts = {step.names[0] for step in steps}
    return next(iter(starts)) if len(starts) == 1 else ""


def _list_conditions(steps: Sequence[MeasuredPair]) -> Table:
    """Return the machine and the Python of each column of the heat map."""
    rows = [
        Row(
            tuple(
                map(Cell, (step.names[1], step.names[0], step.python, step.machine, step.after.manifest.started[:10]))
            )
        )
        for step in steps
    ]
    columns = ("Run", "compared with", "Python", "machine", "day")
    caption = "The machine and the Python of each column."
    return Table(caption, tuple(map(Column, columns)), (Group(tuple(rows)),), fold="Machine and Python of each column")


def _describe_conditions(steps: Sequence[MeasuredPair]) -> str:
    """Return ` 0.9.2 to 0.10.2: Python 3.11.7, AMD EPYC, 2 cores.`; empty if all share one machine and Python."""
    places: dict[tuple[str, str], list[str]] = {}
    for step in steps:
        places.setdefault((step.python, step.machine), [])
        if not step.is_span:
            places[step.python, step.machine].append(step.names[1])
    if len(places) < 2:
        return ""
    of_place = (
        (f"{names[0]} to {names[-1]}" if len(names) > 1 else names[0], place)
        for place, names in places.items()
        if names
    )
    return "".join(f" {names}: Python {python}, {machine}." for names, (python, machine) in of_place)


def _describe_most_changed(steps: Sequence[MeasuredPair]) -> str:
    """Return ` Most changes: 0.4.33, 20 slower, 0 faster.`; empty where nothing changed."""
    counts = []
    neighbours = [step for step in steps if not step.is_span]
    for step, (name, _) in zip(neighbours, _name_steps(neighbours), strict=True):
        slower, faster = (
            sum(change.verdict is kind for change in step.changes.times) for kind in (Verdict.SLOWER, Verdict.FASTER)
        )
        counts.append((slower + faster, slower, faster, name))
    most, slower, faster, name = max(counts, key=lambda count: count[0], default=(0, 0, 0, ""))
    return f" Most changes: {name}, {slower} slower, {faster} faster." if most else ""


def _make_rows(steps: Sequence[MeasuredPair]) -> tuple[list[Row], int]:
    """Return a row for each variant with a confirmed change, the largest first, and how many are left out."""
    cells: dict[Key, dict[int, Change]] = {}
    compared: dict[tuple[int, Key], Change] = {}
    for number, step in enumerate(steps):
        for change in step.changes.times:
            if change.effect is not None:
                compared[number, (change.suite, change.case, change.variant)] = change
            if change.verdict.is_confirmed and change.effect is not None:
                cells.setdefault((change.suite, change.case, change.variant), {})[number] = change
    ordered = sorted(cells.items(), key=lambda item: -max(change.size for change in item[1].values()))
    names = name_rows([key for key, _ in ordered])
    rows = [
        Row(
            (
                Cell(
                    names[suite, case, variant],
                    target=make_fragment("case", suite, case),
                    hint=shorten(f"{case} {variant}", LONGEST_NAME),
                ),
                *_make_cells(steps, [compared.get((number, (suite, case, variant))) for number in range(len(steps))]),
            )
        )
        for (suite, case, variant), _ in ordered[:MOST_ROWS]
    ]
    return rows, max(0, len(ordered) - MOST_ROWS)


def _make_cells(steps: Sequence[MeasuredPair], changes: Sequence[Change | None]) -> Iterator[Cell]:
    """Yield the cells of a row. A total that its steps contradict is a warning: one of the two is wrong."""
    for step, change in zip(steps, changes, strict=True):
        cell = _make_cell(change, is_span=step.is_span)
        why = ""
        if step.is_span and change is not None:
            of_steps = [changes[number] for number in _find_chain(step, steps)]
            why = explain_contradiction(of_steps, change)
        yield (
            replace(cell, text=f"! {cell.text}", tone=Tone.WARN, shade="", hint=f"{cell.hint}; {why}") if why else cell
        )


def _find_chain(span: MeasuredPair, steps: Sequence[MeasuredPair]) -> list[int]:
    """Return the indices of the steps that lead from the earlier run of a span to its later run.

    The list is empty if a step is missing, or if a step and the span have different machines or Pythons. The product of
    such steps can differ from the change of the span.
    """
    chain: list[int] = []
    name = span.names[0]
    for number, step in enumerate(steps):
        is_alike = (step.machine, step.python) == (span.machine, span.python)
        if not step.is_span and is_alike and step.names[0] == name != span.names[1]:
            chain.append(number)
            name = step.names[1]
    return chain if name == span.names[1] else []


def _make_cell(change: Change | None, *, is_span: bool) -> Cell:
    """Return the cell of a comparison; of neighbours it is blank where nothing is confirmed, which is most often."""
    if change is None:
        return NOT_COMPARED
    text, bounds = write_effect(change)
    if not change.verdict.is_confirmed:
        return Cell(f"({text})", tone=Tone.MUTED, hint=f"{bounds}, {change.verdict.value}") if is_span else Cell()
    tone = Tone.BAD if change.verdict is Verdict.SLOWER else Tone.GOOD
    return Cell(text, tone=tone, shade=_find_shade(change), hint="" if bounds == numbers.MISSING else bounds)


def _find_shade(change: Change) -> str:
    """Return `slower-2`, `faster-4`: the direction, and how dark the cell is."""
    level = max(1, sum(change.size - 1 >= least for least in SHADES))
    return f"{change.verdict.value}-{level}"


def _list_histories(steps: Sequence[MeasuredPair], history: History) -> Iterator[Card]:
    """Yield the time in each run of the cases that changed most."""
    confirmed = [
        change for step in steps if not step.is_span for change in step.changes.times if change.verdict.is_confirmed
    ]
    targets = dict.fromkeys(
        make_fragment("case", change.suite, change.case)
        for change in sorted(confirmed, key=lambda change: -change.size)
    )
    for target in list(targets)[:MOST_CURVES]:
        machines: Sequence[Sequence[Case]] = history.get(target, ())
        figure = draw_history(machines)
        if figure is not None:
            name = name_case(machines[0][0])
            yield Card(f"history-{target}", name, (), figure, target)


QUESTION = "How was it in earlier runs?"
MOST_RUNS = 30
"""The newest of a machine; the export holds all."""

TIME, FAIR = "execution_s", "normalised_s"
CAPTION = "The newest run first. Do not compare times by eye: the machine may have changed in between."


def make_history_section(
    machines: Sequence[Sequence[Case]], change_points: Sequence[ChangePoint] = ()
) -> Section | None:
    """The section; None where no machine ran the case twice.

    Args:
      machines: The case in each run of a machine, the newest first.
      change_points: What changed for good.
    """
    repeated = [cases for cases in machines if len(cases) > 1]
    if not repeated:
        return None
    groups = tuple(group for cases in repeated for group in _list_groups(cases[:MOST_RUNS], change_points))
    columns = (
        Column("Run"),
        Column("Began", "UTC"),
        Column("jax"),
        make_column("speedup"),
        make_column(TIME, "Time"),
        make_column(FAIR, "Normalised"),
    )
    left = sum(max(0, len(cases) - MOST_RUNS) for cases in repeated)
    rest = f" {counted(left, 'older run')} left out: jaxmeter export has all." if left else ""
    changed = f" {counted(len(change_points), 'change_point')} over many runs." if change_points else ""
    answer = f"{counted(sum(map(len, repeated)), 'run')} of it.{changed}"
    table = Table(f"{CAPTION}{rest}", columns, groups)
    return Section(
        "history",
        "Runs",
        QUESTION,
        answer,
        (Part(tables=(table,), notes=tuple(map(write_change_point, change_points))),),
    )


def _list_groups(cases: Sequence[Case], change_points: Sequence[ChangePoint]) -> list[Group]:
    """The runs of a machine below each variant that the newest has."""
    groups = []
    for newest in cases[0].shown:
        variants = [variant for case in cases if (variant := case.find(newest.name)) is not None]
        own = [change_point for change_point in change_points if change_point.variant == newest.name]
        groups.append(Group(tuple(_row(variant, own) for variant in variants), f"{newest.name} · {cases[0].run.label}"))
    return groups


def _row(variant: Variant, change_points: Sequence[ChangePoint]) -> Row:
    run = variant.case.run
    speedup = Cell("baseline", tone=Tone.MUTED) if variant.is_baseline else make_interval_cell(variant.read("speedup"))
    return Row(
        (
            Cell(run.name, _describe_change_points(run.name, change_points)),
            Cell(run.manifest.started[:16].replace("T", " ")),
            Cell(run.environment.packages.get("jax", "unknown")),
            speedup,
            *make_time_cells(variant),
        )
    )


def _describe_change_points(run: str, change_points: Sequence[ChangePoint]) -> str:
    """What is another since a run; empty where nothing is."""
    return "; ".join(
        f"since here: {write_levels(change_point)}" for change_point in change_points if change_point.first == run
    )


def explain_contradiction(steps: Sequence[Change | None], total: Change) -> str:
    """Return `its steps multiply to 1.9× [1.4, 2.6]` where that and the total exclude each other; empty elsewhere.

    Both are estimates of one ratio from different processes. Of two 95 % confidence intervals that are equally wide,
    0.6 % lie apart by chance, and at most 5 % where one is much wider.

    Args:
      steps: What each run changed since the one before, from the total's earlier run to its later one; None where the
        case was not compared, which leaves nothing to say.
    """
    effects = [None if step is None else step.effect for step in steps]
    chained = _multiply(effects)
    direct = None if total.effect is None else take_logarithm(total.effect)
    if len(steps) < 2 or chained is None or direct is None:
        return ""
    (middle, half), (own_middle, own_half) = chained, direct
    if abs(middle - own_middle) <= half + own_half:
        return ""
    low, estimate, high = (math.exp(value) for value in (middle - half, middle, middle + half))
    product = " ".join(numbers.speedup_with_bounds(Interval(low, estimate, high, len(steps))))
    return f"its steps multiply to {product}"


def _multiply(effects: Sequence[Interval | None]) -> tuple[float, float] | None:
    """Return the logarithm of the product, and half the width of its interval: the variances add up."""
    known = [None if effect is None else take_logarithm(effect) for effect in effects]
    usable = [logarithm for logarithm in known if logarithm is not None]
    if len(usable) < len(known) or not usable:
        return None
    return math.fsum(middle for middle, _ in usable), math.hypot(*(half for _, half in usable))
