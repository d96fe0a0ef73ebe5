"""Series of runs, each measured next to an earlier one, such as releases: a heat map of what each one changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jaxmeter.harness.metrics.reading import Case, Run

from ... import numbers
from ...compare.changes import find_changes
from ...compare.findings import Change, Changes, Finding
from ...text import by_numbers, counted, shorten
from ..changes import write_effect
from ..figures.history import draw_history
from ..figures.marks import name_case
from ..keys import make_fragment
from ..machines import History, MachineRuns
from ..names import LONGEST_NAME
from ..overview_model import Card
from ..page_model import Cell, Column, Group, ReleasesView, Row, Table, Tone

FEWEST_PAIRS = 2
"""Of one pair the comparison says all."""

MOST_ROWS, MOST_CURVES = 60, 4

SHADES = (0.03, 0.08, 0.20)
"""Sizes of a change from which on a cell is darker."""

CONFIRMED = (Finding.SLOWER, Finding.FASTER)

QUESTION = "What did each release change?"
CAPTION = (
    "Confirmed changes of a time, compared with the run before; blank: none confirmed; n/c: not compared. Slower is "
    "orange, with a plus or above 1×; faster is green, with a minus or below 1×; darker from 3, 8 and 20 % on."
)

NOT_COMPARED = Cell("n/c", tone=Tone.MUTED, hint="not compared: not timed in both runs")

Key = tuple[str, str, str]
"""Suite, case and variant."""


@dataclass(frozen=True)
class Pair:
    """A run, and what changed since the run that it was measured next to."""

    before: Run
    after: Run
    changes: Changes


def make_releases_view(machines: Sequence[MachineRuns], history: History, minimum_effect: float) -> ReleasesView | None:
    """Return the view; None where fewer than two runs were measured next to an earlier one of the page.

    Args:
      history: By the fragment of a case, for each machine the case in all runs.
    """
    pairs = [pair for machine in machines for pair in find_pairs(machine, minimum_effect)]
    if len(pairs) < FEWEST_PAIRS:
        return None
    steps = _order(pairs)
    rows, left = _make_rows(steps)
    timed = sum(len(pair.changes.times) for pair in steps)
    confirmed = sum(one.finding in CONFIRMED for pair in steps for one in pair.changes.times)
    how = next((one.condition for pair in steps for one in pair.changes.times if one.condition), "")
    answer = f"{counted(confirmed, 'change')} confirmed of {counted(timed, 'time')}{f' {how}' if how else ''}."
    columns = (Column("Case"), *(Column(name, numeric=True) for name in _name_steps(steps)))
    table = Table(CAPTION, columns, (Group(tuple(rows)),))
    note = f"{counted(left, 'more row')} in the list of changes." if left else ""
    return ReleasesView(QUESTION, answer, table, note, tuple(_list_histories(steps, history)))


def find_pairs(machine: MachineRuns, minimum_effect: float) -> Iterator[Pair]:
    """Yield each run of a machine that was measured next to an earlier one of the page, with what changed."""
    by_id = {run.manifest.run_id: run for run in machine.runs}
    for run in machine.runs:
        before = by_id.get(run.manifest.against or "")
        if before is not None and before is not run:
            yield Pair(before, run, find_changes(before, run, minimum_effect=minimum_effect))


def _order(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs by the version of the later run, then by its time; of one version the first is enough."""
    found: dict[tuple[str, str], Pair] = {}
    for pair in sorted(pairs, key=lambda one: one.after.manifest.started):
        found[_name_run(pair.before), _name_run(pair.after)] = pair  # a second measurement takes the first one's place
    return sorted(found.values(), key=lambda one: (by_numbers(_name_run(one.after)), by_numbers(_name_run(one.before))))


def _name_run(run: Run) -> str:
    return run.environment.packages.get("jax", run.manifest.started[:10])


def _name_steps(steps: Sequence[Pair]) -> list[str]:
    """Return the name of each column: the later release, and the earlier one where it is not the one before."""
    names, last = [], ""
    for step in steps:
        before, after = _name_run(step.before), _name_run(step.after)
        if before == after:
            after = step.after.manifest.started[:10]
        names.append(after if before == last or not last else f"{before} → {after}")
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
    rows = [
        Row(
            (
                Cell(_name_row(case, variant), target=make_fragment("case", suite, case)),
                *(
                    _make_cell(found.get(number)) if (number, (suite, case, variant)) in compared else NOT_COMPARED
                    for number in range(len(steps))
                ),
            )
        )
        for (suite, case, variant), found in ordered[:MOST_ROWS]
    ]
    return rows, max(0, len(ordered) - MOST_ROWS)


def _name_row(case: str, variant: str) -> str:
    """Return the case, with the implementation where the workload does not have its name."""
    implementation = variant.partition(":")[0]
    return shorten(case if case.partition("[")[0] == implementation else f"{case} {implementation}", LONGEST_NAME)


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
    found = [one for step in steps for one in step.changes.times if one.finding in CONFIRMED]
    targets = dict.fromkeys(
        make_fragment("case", one.suite, one.case) for one in sorted(found, key=lambda one: -_size(one))
    )
    for target in list(targets)[:MOST_CURVES]:
        machines: Sequence[Sequence[Case]] = history.get(target, ())
        figure = draw_history(machines)
        if figure is not None:
            name = name_case(machines[0][0])
            yield Card(f"history-{target}", name, (), figure, target)
