"""What changed on each machine: from one run to its newest one, and for good over all of its runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from jaxmeter.document import numbers
from jaxmeter.document.model import Cell, Column, Document, Group, Item, Part, Row, Table, Tone
from jaxmeter.harness.metrics.reading import Case, Run
from jaxmeter.harness.metrics.statistics import MINIMUM_EFFECT, Interval
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.metrics.write import write_sides
from jaxmeter.harness.record.cases import find_nearest, match_cases, names_of
from jaxmeter.harness.record.wording import counted, shorten

from ..compare.changes import find_changes
from ..compare.conditions import NOTHING_KNOWN
from ..compare.verdicts import PROGRAM, TIME, WHOLE, Change, Changes, JudgedReport, Verdict, merge
from ..history import (
    FEWEST,
    NEAR,
    ChangePoint,
    KnownChangePoint,
    Series,
    find_change_points,
    find_clock_faults,
    gather_series,
    is_told_by_time,
)
from ..load import Loaded
from .cells import LONGEST_REASON
from .changes import TONES, order_changes
from .runs import LONGEST_NAME, MachineRuns, describe_cores, group_by_machine, label_runs, make_fragment, name_device

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


@dataclass(frozen=True)
class MeasuredPair:
    """A run, and what changed since the run that it was measured next to.

    Args:
      is_span: Whether other releases of the page lie between both.
    """

    before: Run
    after: Run
    changes: Changes
    names: tuple[str, str] = ("", "")
    is_span: bool = False

    @property
    def machine(self) -> str:
        """The device and the cores: `AMD EPYC, 2 cores, each timing process on one`."""
        return f"{shorten(name_device(self.after), LONGEST_NAME)}, {describe_cores(self.after)}"

    @property
    def python(self) -> str:
        """The Python: `3.12.1`, or `3.11.7 → 3.12.1` if the Pythons of both runs differ."""
        return " → ".join(dict.fromkeys(run.environment.python for run in (self.before, self.after)))


@dataclass(frozen=True)
class Comparisons:
    """Changes by machine, and by case.

    Args:
      of_machines: In the order of the machines that have an earlier run.
      change_points: What changed for good over many runs, by machine.
      pairs: Each run that was measured next to an earlier one of its machine and of the page.
      steps: By suite and case, the confirmed changes from run to run, each with the name of the later run.
    """

    of_machines: tuple[tuple[MachineRuns, Changes], ...] = ()
    change_points: tuple[MachineChanges, ...] = ()
    _by_case: dict[tuple[int, str, str], tuple[Change, ...]] = field(default_factory=dict)
    pairs: tuple[MeasuredPair, ...] = ()
    steps: Mapping[tuple[str, str], tuple[tuple[str, Change], ...]] = field(default_factory=dict)

    @property
    def reports(self) -> tuple[JudgedReport, ...]:
        """Reports of releases, of all machines."""
        return tuple(report for _, changes in self.of_machines for report in changes.reports)

    def of(self, case: Case) -> tuple[Change, ...]:
        """What was found of a case of a newest run; empty where it was not compared."""
        return self._by_case.get((id(case.run), case.planned.name, case.planned.platform), ())

    def worst_of(self, case: Case, variant: str = "") -> Change | None:
        """What is to be told first of a case, or of one variant of it; None where nothing changed."""
        own = [change for change in self.of(case) if not variant or change.variant in ("", variant)]
        return next(iter(order_changes(own)), None)

    def change_points_of(self, case: Case) -> tuple[ChangePoint, ...]:
        """What changed for good of a case at the place of its run."""
        return next(
            (
                machine_changes.of(case)
                for machine_changes in self.change_points
                if machine_changes.machine.has(case.run)
            ),
            (),
        )

    def steps_of(self, case: Case) -> tuple[tuple[str, Change], ...]:
        """Return the confirmed changes of a case from run to run."""
        return self.steps.get((case.planned.suite, case.planned.name), ())

    def earlier_of(self, case: Case) -> str:
        """The id of the run that a case was compared with; empty where there is none."""
        return next((changes.before for machine, changes in self.of_machines if machine.newest is case.run), "")


def compare_machines(
    machines: Sequence[MachineRuns],
    confirmation: Run | None = None,
    minimum_effect: float = MINIMUM_EFFECT,
    known: Sequence[KnownChangePoint] = (),
) -> Comparisons:
    """Every machine with more than one run of a case.

    Args:
      confirmation: A run that timed what was suspected against one of these runs.
      minimum_effect: The smallest change of a time that is told, as a share.
      known: Change points over many runs that are no news.
    """
    pairs = tuple(_find_pairs(machines, minimum_effect))
    known_changes = {(id(pair.before), id(pair.after)): pair.changes for pair in pairs}
    of_machines = []
    by_case: dict[tuple[int, str, str], list[Change]] = {}
    for machine in machines:
        earlier = _choose_earlier(machine)
        if earlier is None:
            continue
        newest = machine.newest
        changes = known_changes.get((id(earlier), id(newest)))
        changes = changes or find_changes(earlier, newest, minimum_effect=minimum_effect)
        if confirmation is not None and confirmation.manifest.against == changes.before:
            again = find_changes(earlier, confirmation, minimum_effect=minimum_effect, explained_by=newest)
            changes = merge(changes, again)
        if newest.manifest.against != changes.before:
            changes = replace(changes, entries=tuple(change for change in changes.entries if not _is_elsewhere(change)))
        of_machines.append((machine, changes))
        for change in changes.entries:
            by_case.setdefault((id(newest), change.case, change.platform), []).append(change)
    change_points = gather_change_points(machines, known, minimum_effect)
    cases = {key: tuple(own) for key, own in by_case.items()}
    return Comparisons(tuple(of_machines), change_points, cases, pairs)


def _find_pairs(machines: Sequence[MachineRuns], minimum_effect: float) -> Iterator[MeasuredPair]:
    for machine in machines:
        by_id = {run.manifest.run_id: run for run in machine.runs}
        for run in machine.runs:
            before = by_id.get(run.manifest.against or "")
            if before is not None and before is not run:
                yield MeasuredPair(before, run, find_changes(before, run, minimum_effect=minimum_effect))


def _is_elsewhere(change: Change) -> bool:
    """Whether it says that only one of the runs has a case: the page has those of all runs."""
    return (
        change.metric == WHOLE
        and not change.variant
        and not change.reason
        and change.verdict in (Verdict.NEW, Verdict.GONE)
    )


def _choose_earlier(machine: MachineRuns) -> Run | None:
    """The run that the newest was measured against; else the newest before it that has a case of it."""
    newest = machine.newest
    earlier = machine.runs[-2::-1]
    shared = [run for run in earlier if not run.by_key.keys().isdisjoint(newest.by_key)]
    meant = [run for run in shared if run.manifest.run_id == newest.manifest.against]
    return next(iter(meant or shared), None)
