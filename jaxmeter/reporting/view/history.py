"""The history of runs: its change points machine by machine, as a document, and what makes their order doubtful."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxmeter.document.model import Cell, Column, Document, Group, Item, Part, Row, Table, Tone
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.metrics.write import write_sides
from jaxmeter.harness.record.patterns import find_nearest, match_cases, names_of
from jaxmeter.harness.record.wording import counted

from ..compare.verdicts import TIME
from ..history.change_points import NEAR, ChangePoint, is_told_by_time
from ..history.clocks import find_clock_faults
from ..history.known import KnownChangePoint
from ..history.segmentation import FEWEST
from ..load import Loaded
from .change_points import MachineChanges, describe_change_points, gather_change_points, label, write_effect
from .changes import TONES
from .runs import group_by_machine, label_runs

MOST_CHANGE_POINTS = 12
"""Of one change; --json has all."""

COLUMNS = (
    Column("case"),
    *(Column(title, numeric=True) for title in ("before", "after", "change", "runs")),
    Column("cause"),
)


def find_history(
    loaded: Loaded, known: Sequence[KnownChangePoint], pattern: str, minimum_effect: float
) -> tuple[MachineChanges, ...]:
    """Return what changed for good, machine by machine.

    Args:
      pattern: Of the cases that are looked at, as of `--select`.
    """
    machines = gather_change_points(
        group_by_machine(label_runs(loaded.runs)), known, minimum_effect, fewest_runs=1, most_runs=None
    )
    return tuple(_limit(changes, pattern) for changes in machines)


def _limit(changes: MachineChanges, pattern: str) -> MachineChanges:
    series = tuple(each for each in changes.series if match_cases([each.case], pattern))
    names = {(each.case.suite, each.case.name) for each in series}
    own = tuple(change for change in changes.change_points if (change.suite, change.case) in names)
    return MachineChanges(changes.machine, series, own)


def list_faults(loaded: Loaded) -> list[str]:
    """Return what makes the order of the runs doubtful."""
    return list(find_clock_faults(run.record for run in loaded.runs))


def find_unused(known: Sequence[KnownChangePoint], loaded: Loaded) -> list[str]:
    """Return runs that known change points name, and nobody has read."""
    ids = {run.manifest.run_id for run in loaded.runs}
    return [change.run for change in known if change.run not in ids]


def explain_nothing(loaded: Loaded, pattern: str) -> str:
    """Return why there is no series."""
    cases = [case for run in loaded.runs for case in run.manifest.cases]
    if not match_cases(cases, pattern):
        nearest = find_nearest(pattern, [name for case in cases for name in names_of(case)])
        return f"no case matches --case '{pattern}'{f'; nearest: {nearest}' if nearest else ''}"
    return (
        "no series: a number needs at least two runs of one machine that have it, of one definition and not contended"
    )


def describe_history(found: Sequence[MachineChanges]) -> Document:
    """Return the change points of each machine, by the first run that has them."""
    return Document(parts=tuple(part for one in found for part in _describe_machine(one)))


def _describe_machine(found: MachineChanges) -> Iterator[Part]:
    notes = []
    short = sum(one.metric == TIME and not is_told_by_time(one) for one in found.series)
    if short:
        times = counted(short, "series of times has", "series of times have")
        notes.append(f"{times} fewer than {FEWEST} clean runs: too few to detect a change point")
    if contended := sum(one.contended for one in found.series):
        notes.append(f"{counted(contended, 'time')} left out as contended")
    yield Part(f"{found.machine.name}: {describe_change_points(found)}", notes=tuple(notes))
    for change_points in group_change_points(found.change_points):
        first = change_points[0]
        changed = "; ".join(filter(None, (first.commits, first.versions))) or "nothing that is recorded changed"
        about = "about " if all(one.metric == TIME for one in change_points) else ""
        since = f"since {about}run {first.first}, begun {first.began[:16].replace('T', ' ')}: {changed}"
        left = len(change_points) - MOST_CHANGE_POINTS
        more = (f"+ {left} more, in --json",) if left > 0 else ()
        yield Part(tables=(_make_table(change_points[:MOST_CHANGE_POINTS]),), notes=more, items=(Item(since),))


def group_change_points(change_points: Sequence[ChangePoint]) -> list[list[ChangePoint]]:
    """Change points that may have one cause, the newest first: those of one run, and times within NEAR runs of it."""
    groups: list[list[ChangePoint]] = []
    for change_point in sorted(change_points, key=lambda one: (one.metric == TIME, -one.index)):
        near = NEAR if change_point.metric == TIME else 0
        group = next((one for one in groups if abs(one[0].index - change_point.index) <= near), None)
        if group is None:
            groups.append([change_point])
        else:
            group.append(change_point)
    return sorted(groups, key=lambda one: -one[0].index)


def _make_table(change_points: Sequence[ChangePoint]) -> Table:
    """A row for each, below the title of its metric."""
    metrics = dict.fromkeys(one.metric for one in change_points)
    groups = (
        Group(tuple(_make_row(one) for one in change_points if one.metric == metric), _name_metric(metric))
        for metric in metrics
    )
    return Table("", COLUMNS, tuple(groups))


def _name_metric(metric: str) -> str:
    return "time" if metric == TIME else METRICS[metric].title if metric in METRICS else metric


def _make_row(one: ChangePoint) -> Row:
    has_both = one.before is not None and one.after is not None
    sides = write_sides(METRICS[one.metric], one.before, one.after) if has_both else ("", "")
    cause = one.known or f"likely cause: {one.cause}"
    return Row(
        (
            Cell(f"{one.case} {one.variant}"),
            *map(Cell, sides),
            Cell(write_effect(one)),
            Cell(f"{one.runs[0]} + {one.runs[1]}"),
            Cell(f"{label(one)}; {cause}", tone=Tone.MUTED if one.known else TONES.get(one.verdict, Tone.PLAIN)),
        )
    )
