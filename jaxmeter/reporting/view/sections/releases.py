"""Series of runs, each measured next to an earlier one, such as releases: a heat map of what each one changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from jaxmeter.harness.metrics.reading import Case, Run

from ... import numbers
from ...compare.changes import find_changes
from ...compare.findings import Change, Changes, Finding, JudgedReport
from ...text import by_numbers, counted, shorten
from ..changes import write_effect
from ..figures.history import draw_history
from ..figures.marks import name_case
from ..keys import make_fragment
from ..machines import History, MachineRuns
from ..names import LONGEST_NAME, Key, name_rows
from ..overview_model import Card
from ..page_model import Cell, Column, Group, ReleasesView, Row, Table
from ..tone import Tone

FEWEST_PAIRS = 2
"""Of one pair the comparison says all."""

MOST_ROWS, MOST_CURVES = 60, 5

SHADES = (0.03, 0.08, 0.20)
"""Sizes of a change from which on a cell is darker."""

CONFIRMED = (Finding.SLOWER, Finding.FASTER)

QUESTION = "What did each release change?"
CAPTION = (
    "Confirmed changes of a time, compared with the run before; blank: none confirmed; n/c: not compared. Slower is "
    "orange, with a plus or above 1×; faster is green, with a minus or below 1×; darker from 3, 8 and 20 % on. "
    "Point at a cell for its interval. Rows need not add up: small changes are not confirmed singly."
)

NOT_COMPARED = Cell("n/c", tone=Tone.MUTED, hint="not compared: not timed in both runs")


@dataclass(frozen=True)
class Pair:
    """A run, and what changed since the run that it was measured next to.

    Args:
      is_span: Whether other releases of the page lie between both.
    """

    before: Run
    after: Run
    changes: Changes
    is_span: bool = False


def make_releases_view(pairs: Sequence[Pair], history: History) -> ReleasesView | None:
    """Return the view; None of fewer than two pairs.

    Args:
      history: By the fragment of a case, for each machine the case in all runs.
    """
    if len(pairs) < FEWEST_PAIRS:
        return None
    steps = _order(pairs)
    rows, left = _make_rows(steps)
    times = [one for pair in steps if not pair.is_span for one in pair.changes.times]
    confirmed = sum(one.finding in CONFIRMED for one in times)
    how = next((one.condition for one in times if one.condition), "")
    answer = f"{counted(confirmed, 'change')} confirmed of {counted(len(times), 'time')}{f' {how}' if how else ''}."
    columns = (Column("Case"), *(Column(name, detail, numeric=True) for name, detail in _name_steps(steps)))
    table = Table(CAPTION, columns, (Group(tuple(rows)),))
    note = f"{counted(left, 'more row')} in the list of changes." if left else ""
    return ReleasesView(QUESTION, answer, table, note, tuple(_list_histories(steps, history)))


def find_pairs(machines: Sequence[MachineRuns], minimum_effect: float) -> Iterator[Pair]:
    """Yield each run that was measured next to an earlier one of its machine and of the page, with what changed."""
    for machine in machines:
        by_id = {run.manifest.run_id: run for run in machine.runs}
        for run in machine.runs:
            before = by_id.get(run.manifest.against or "")
            if before is not None and before is not run:
                yield Pair(before, run, find_changes(before, run, minimum_effect=minimum_effect))


def choose_reports(pairs: Sequence[Pair], others: Sequence[JudgedReport]) -> tuple[JudgedReport, ...]:
    """Return each report of a release once: as the pair says that has the fewest other releases between its two.

    A pair that measured the program comes before one that did not.

    Args:
      others: What comparisons of newest runs say; they may be of runs that were measured apart.
    """
    names = sorted({_name_run(run) for pair in pairs for run in (pair.before, pair.after)}, key=by_numbers)
    places = {name: place for place, name in enumerate(names)}

    def rank(one: JudgedReport) -> tuple[bool, int]:
        before, after = (places.get(release, 0) for release in one.releases)
        return one.ours is None, abs(after - before) or len(places)

    found: dict[tuple[str, str, str, str], JudgedReport] = {}
    for one in sorted((*others, *(report for pair in pairs for report in pair.changes.reports)), key=rank):
        found.setdefault((one.report.source, one.report.after, one.report.metric, one.case), one)
    return tuple(sorted(found.values(), key=lambda one: by_numbers(f"{one.report.before} {one.report.after}")))


def gather_steps(pairs: Sequence[Pair]) -> dict[tuple[str, str], tuple[tuple[str, Change], ...]]:
    """Return by suite and case the confirmed changes of times between neighbours, each with the later release."""
    found: dict[tuple[str, str], list[tuple[str, Change]]] = {}
    steps = [step for step in _order(pairs) if not step.is_span]
    for step, (name, _) in zip(steps, _name_steps(steps), strict=True):
        for one in step.changes.times:
            if one.finding in CONFIRMED and one.effect is not None:
                found.setdefault((one.suite, one.case), []).append((name, one))
    return {key: tuple(changes) for key, changes in found.items()}


def _order(pairs: Sequence[Pair]) -> list[Pair]:
    """Return neighbours by the version of the later run, then pairs that others lie between."""
    found: dict[tuple[str, str], Pair] = {}
    for pair in sorted(pairs, key=lambda one: one.after.manifest.started):
        found[_name_run(pair.before), _name_run(pair.after)] = pair  # a second measurement takes the first one's place
    names = sorted({name for sides in found for name in sides}, key=by_numbers)
    marked = [
        replace(pair, is_span=abs(names.index(after) - names.index(before)) > 1)
        for (before, after), pair in found.items()
    ]
    return sorted(marked, key=lambda one: (one.is_span, by_numbers(_name_run(one.after)), _name_run(one.before)))


def _name_run(run: Run) -> str:
    return run.environment.packages.get("jax", run.manifest.started[:10])


def _name_steps(steps: Sequence[Pair]) -> list[tuple[str, str]]:
    """Return the heading of each column: the later release, and the earlier one where it is not the one before."""
    names, last = [], ""
    for step in steps:
        before, after = _name_run(step.before), _name_run(step.after)
        if before == after:
            after = step.after.manifest.started[:10]
        is_next = not step.is_span and (before == last or not last)
        names.append((after, "" if is_next else f"since {before}"))
        last = _name_run(step.after)
    return names


def _make_rows(steps: Sequence[Pair]) -> tuple[list[Row], int]:
    """Return a row for each variant with a confirmed change, the largest first, and how many are left out."""
    cells: dict[Key, dict[int, Change]] = {}
    compared: set[tuple[int, Key]] = set()
    for number, step in enumerate(steps):
        for one in step.changes.times:
            if one.effect is not None:
                compared.add((number, (one.suite, one.case, one.variant)))
            if one.finding in CONFIRMED and one.effect is not None:
                cells.setdefault((one.suite, one.case, one.variant), {})[number] = one
    ordered = sorted(cells.items(), key=lambda item: -max(map(_size, item[1].values())))
    names = name_rows([key for key, _ in ordered])
    rows = [
        Row(
            (
                Cell(
                    names[suite, case, variant],
                    target=make_fragment("case", suite, case),
                    hint=shorten(f"{case} {variant}", LONGEST_NAME),
                ),
                *(
                    _make_cell(found.get(number)) if (number, (suite, case, variant)) in compared else NOT_COMPARED
                    for number in range(len(steps))
                ),
            )
        )
        for (suite, case, variant), found in ordered[:MOST_ROWS]
    ]
    return rows, max(0, len(ordered) - MOST_ROWS)


def _make_cell(one: Change | None) -> Cell:
    if one is None or one.effect is None:
        return Cell()
    text, bounds = write_effect(one)
    tone = Tone.BAD if one.finding is Finding.SLOWER else Tone.GOOD
    return Cell(text, tone=tone, shade=_find_shade(one), hint="" if bounds == numbers.MISSING else bounds)


def _find_shade(one: Change) -> str:
    """Return `slower-2`, `faster-3`: the direction, and how dark the cell is."""
    level = max(1, sum(_size(one) - 1 >= least for least in SHADES))
    return f"{one.finding.value}-{level}"


def _size(one: Change) -> float:
    estimate = 1.0 if one.effect is None or one.effect.estimate <= 0 else one.effect.estimate
    return max(estimate, 1 / estimate)


def _list_histories(steps: Sequence[Pair], history: History) -> Iterator[Card]:
    """Yield the time in each run of the cases that changed most."""
    found = [one for step in steps if not step.is_span for one in step.changes.times if one.finding in CONFIRMED]
    targets = dict.fromkeys(
        make_fragment("case", one.suite, one.case) for one in sorted(found, key=lambda one: -_size(one))
    )
    for target in list(targets)[:MOST_CURVES]:
        machines: Sequence[Sequence[Case]] = history.get(target, ())
        figure = draw_history(machines)
        if figure is not None:
            name = name_case(machines[0][0])
            yield Card(f"history-{target}", name, (), figure, target)
