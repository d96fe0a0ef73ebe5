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
        changed = "; ".join(filter(None, (first.commits, first.versions))) or "no commit or version changed"
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
        return tuple(one for one in self.change_points if (one.suite, one.case, one.platform) == wanted)


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


def list_steps(found: Iterable[MachineChanges]) -> tuple[Item, ...]:
    """A line for each change point that is news, the newest first."""
    change_points = (change_point for one in found for change_point in one.change_points if not change_point.known)
    return tuple(
        Item(write_change_point(one), one.verdict.value, _link(one), TONES.get(one.verdict, Tone.PLAIN))
        for one in change_points
    )


def describe_change_points(found: MachineChanges) -> str:
    """`20 runs, 36 series: 2 change points, 1 of them known`."""
    known = sum(bool(one.known) for one in found.change_points)
    of_them = f", {known} of them known" if known else ""
    series = counted(len(found.series), "series", "series")
    return (
        f"{counted(len(found.machine.runs), 'run')}, {series}: "
        f"{counted(len(found.change_points), 'change point')}{of_them}"
    )


def write_change_point(one: ChangePoint) -> str:
    """`selu[n=1] selu:jit: time 11 µs → 12 µs, +9 %, since run A, begun 2026-11-20 (6 and 8 runs); commit a → b; …`."""
    name = " ".join((shorten(one.case, LONGEST_NAME), shorten(one.variant, LONGEST_NAME)))
    about = "about " if one.metric == TIME else ""
    since = f"since {about}run {shorten(one.first, LONGEST_NAME)}, begun {one.began[:10]}"
    sides = f"({one.runs[0]} and {counted(one.runs[1], 'run')})"
    told = f"{name}: {', '.join(filter(None, (write_levels(one), since)))} {sides}"
    return "; ".join((told, *list_reasons(one)))


def list_reasons(one: ChangePoint) -> Iterator[str]:
    """What may explain it."""
    if one.known:
        yield shorten(f"known: {one.known}", LONGEST_REASON)
        return
    cause = one.cause.removeprefix(NOTHING_KNOWN).removeprefix("; ") if one.commits else one.cause
    told = (one.commits, cause)
    yield shorten(f"likely cause: {'; '.join(filter(None, told))}", LONGEST_REASON)


def write_levels(one: ChangePoint) -> str:
    """`time 11 µs → 12 µs, +9.1 %`; `program`."""
    if one.before is None or one.after is None:
        return "program"
    metric = METRICS[one.metric]
    title = "time" if one.metric == TIME else metric.title
    return ", ".join(
        filter(None, (f"{title} {' → '.join(write_sides(metric, one.before, one.after))}", write_effect(one)))
    )


def write_effect(one: ChangePoint) -> str:
    """`+9.1 %`; of a count, and of a program, nothing."""
    if one.effect is None or one.metric in (PROGRAM, "compiles", "recompiles"):
        return ""
    return numbers.change(Interval(one.effect, one.effect, one.effect, 1))[0]


def _link(one: ChangePoint) -> str:
    return make_fragment("case", one.suite, one.case)


def label(one: ChangePoint) -> str:
    """The verdict, or that it is known."""
    return KNOWN if one.known else one.verdict.value
