"""The history of runs: what changed for good on each machine, as lines and as a document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from jaxmeter.document import numbers
from jaxmeter.document.model import Cell, Column, Document, Group, Item, Part, Row, Table, Tone
from jaxmeter.harness.metrics.reading import Case
from jaxmeter.harness.metrics.statistics import MINIMUM_EFFECT, Interval
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.metrics.write import write_sides
from jaxmeter.harness.record.cases import find_nearest, match_cases, names_of
from jaxmeter.harness.record.wording import counted, shorten

from ..compare.variant_pair import NOTHING_KNOWN
from ..compare.verdicts import PROGRAM, TIME
from ..history.change_points import NEAR, ChangePoint, find_change_points, is_told_by_time
from ..history.known import KnownChangePoint
from ..history.segmentation import FEWEST
from ..history.series import Series, find_clock_faults, gather_series
from ..load import Loaded
from .changes import TONES
from .doubts import LONGEST_REASON
from .names import LONGEST_NAME, make_fragment
from .runs import MachineRuns, group_by_machine, label_runs

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


def describe_history(machines: Sequence[MachineChanges]) -> Document:
    """Return the change points of each machine, by the first run that has them."""
    return Document(parts=tuple(part for machine in machines for part in _describe_machine(machine)))


def _describe_machine(changes: MachineChanges) -> Iterator[Part]:
    notes = []
    short = sum(series.metric == TIME and not is_told_by_time(series) for series in changes.series)
    if short:
        times = counted(short, "series of times has", "series of times have")
        notes.append(f"{times} fewer than {FEWEST} clean runs: too few to detect a change point")
    if contended := sum(series.contended for series in changes.series):
        notes.append(f"{counted(contended, 'time')} left out as contended")
    yield Part(f"{changes.machine.name}: {describe_change_points(changes)}", notes=tuple(notes))
    for change_points in group_change_points(changes.change_points):
        first = change_points[0]
        changed = "; ".join(filter(None, (first.commits, first.versions))) or "no commit or version changed"
        about = "about " if all(point.metric == TIME for point in change_points) else ""
        since = f"since {about}run {first.first}, begun {first.began[:16].replace('T', ' ')}: {changed}"
        left = len(change_points) - MOST_CHANGE_POINTS
        more = (f"+ {left} more, in --json",) if left > 0 else ()
        yield Part(tables=(_make_table(change_points[:MOST_CHANGE_POINTS]),), notes=more, items=(Item(since),))


def group_change_points(change_points: Sequence[ChangePoint]) -> list[list[ChangePoint]]:
    """Change points that may have one cause, the newest first: those of one run, and times within NEAR runs of it."""
    groups: list[list[ChangePoint]] = []
    for point in sorted(change_points, key=lambda point: (point.metric == TIME, -point.index)):
        near = NEAR if point.metric == TIME else 0
        group = next((group for group in groups if abs(group[0].index - point.index) <= near), None)
        if group is None:
            groups.append([point])
        else:
            group.append(point)
    return sorted(groups, key=lambda group: -group[0].index)


def _make_table(change_points: Sequence[ChangePoint]) -> Table:
    """A row for each, below the title of its metric."""
    metrics = dict.fromkeys(point.metric for point in change_points)
    groups = (
        Group(tuple(_make_row(point) for point in change_points if point.metric == metric), _name_metric(metric))
        for metric in metrics
    )
    return Table("", COLUMNS, tuple(groups))


def _name_metric(metric: str) -> str:
    return "time" if metric == TIME else METRICS[metric].title if metric in METRICS else metric


def _make_row(point: ChangePoint) -> Row:
    has_both = point.before is not None and point.after is not None
    sides = write_sides(METRICS[point.metric], point.before, point.after) if has_both else ("", "")
    cause = point.known or f"likely cause: {point.cause}"
    return Row(
        (
            Cell(f"{point.case} {point.variant}"),
            *map(Cell, sides),
            Cell(write_effect(point)),
            Cell(f"{point.runs[0]} + {point.runs[1]}"),
            Cell(f"{label(point)}; {cause}", tone=Tone.MUTED if point.known else TONES.get(point.verdict, Tone.PLAIN)),
        )
    )


FEWEST_RUNS = 3
"""Of a machine; of two, the comparison says what changed."""

MOST_RUNS = 200
"""The newest of a machine that a page looks at: more would take it longer than all else."""

KNOWN = "known"
"""What stands in place of the verdict where a file of known change points explains it."""


@dataclass(frozen=True)
class MachineChanges:
    """What changed for good at one place."""

    machine: MachineRuns
    series: tuple[Series, ...]
    change_points: tuple[ChangePoint, ...]

    def of(self, case: Case) -> tuple[ChangePoint, ...]:
        """Those of a case of the machine."""
        wanted = (case.planned.suite, case.planned.name, case.planned.platform)
        return tuple(point for point in self.change_points if (point.suite, point.case, point.platform) == wanted)


def gather_change_points(
    machines: Iterable[MachineRuns],
    known: Sequence[KnownChangePoint] = (),
    minimum_effect: float = MINIMUM_EFFECT,
    *,
    fewest_runs: int = FEWEST_RUNS,
    most_runs: int | None = MOST_RUNS,
) -> tuple[MachineChanges, ...]:
    """By machine, where it has enough runs.

    Args:
      known: Change points that are no news.
      minimum_effect: The smallest change of a time that counts, as a share.
      most_runs: The newest of a machine that are looked at; all where None.
    """
    return tuple(
        _look(machine, known, minimum_effect, most_runs) for machine in machines if len(machine.runs) >= fewest_runs
    )


def _look(
    machine: MachineRuns, known: Sequence[KnownChangePoint], minimum_effect: float, most_runs: int | None
) -> MachineChanges:
    runs = machine.runs if most_runs is None else machine.runs[-most_runs:]
    series = gather_series([replace(run, lent=run.common_speed) for run in runs])
    return MachineChanges(machine, series, find_change_points(series, known, minimum_effect))


def list_steps(machines: Iterable[MachineChanges]) -> tuple[Item, ...]:
    """A line for each change point that is news, the newest first."""
    change_points = (point for machine in machines for point in machine.change_points if not point.known)
    return tuple(
        Item(write_change_point(point), point.verdict.value, _link(point), TONES.get(point.verdict, Tone.PLAIN))
        for point in change_points
    )


def describe_change_points(changes: MachineChanges) -> str:
    """`20 runs, 36 series: 2 change points, 1 of them known`."""
    known = sum(bool(point.known) for point in changes.change_points)
    of_them = f", {known} of them known" if known else ""
    series = counted(len(changes.series), "series", "series")
    return (
        f"{counted(len(changes.machine.runs), 'run')}, {series}: "
        f"{counted(len(changes.change_points), 'change point')}{of_them}"
    )


def write_change_point(point: ChangePoint) -> str:
    """`selu[n=1] selu:jit: time 11 µs → 12 µs, +9 %, since run A, begun 2026-11-20 (6 and 8 runs); commit a → b; …`."""
    name = " ".join((shorten(point.case, LONGEST_NAME), shorten(point.variant, LONGEST_NAME)))
    about = "about " if point.metric == TIME else ""
    since = f"since {about}run {shorten(point.first, LONGEST_NAME)}, begun {point.began[:10]}"
    sides = f"({point.runs[0]} and {counted(point.runs[1], 'run')})"
    text = f"{name}: {', '.join(filter(None, (write_levels(point), since)))} {sides}"
    return "; ".join((text, *list_reasons(point)))


def list_reasons(point: ChangePoint) -> Iterator[str]:
    """What may explain it."""
    if point.known:
        yield shorten(f"known: {point.known}", LONGEST_REASON)
        return
    cause = point.cause.removeprefix(NOTHING_KNOWN).removeprefix("; ") if point.commits else point.cause
    reasons = (point.commits, cause)
    yield shorten(f"likely cause: {'; '.join(filter(None, reasons))}", LONGEST_REASON)


def write_levels(point: ChangePoint) -> str:
    """`time 11 µs → 12 µs, +9.1 %`; `program`."""
    if point.before is None or point.after is None:
        return "program"
    metric = METRICS[point.metric]
    title = "time" if point.metric == TIME else metric.title
    return ", ".join(
        filter(None, (f"{title} {' → '.join(write_sides(metric, point.before, point.after))}", write_effect(point)))
    )


def write_effect(point: ChangePoint) -> str:
    """`+9.1 %`; of a count, and of a program, nothing."""
    if point.effect is None or point.metric in (PROGRAM, "compiles", "recompiles"):
        return ""
    return numbers.change(Interval(point.effect, point.effect, point.effect, 1))[0]


def _link(point: ChangePoint) -> str:
    return make_fragment("case", point.suite, point.case)


def label(point: ChangePoint) -> str:
    """The verdict, or that it is known."""
    return KNOWN if point.known else point.verdict.value
