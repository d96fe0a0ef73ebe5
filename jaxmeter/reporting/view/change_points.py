"""What changed for good on each machine, over many runs: as lines, and beside the runs of a case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from jaxmeter.document import numbers
from jaxmeter.document.model import Item, Tone
from jaxmeter.harness.metrics.reading import Case
from jaxmeter.harness.metrics.statistics import MINIMUM_EFFECT, Interval
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.metrics.write import write_sides
from jaxmeter.harness.record.wording import counted, shorten

from ..compare.variant_pair import NOTHING_KNOWN
from ..compare.verdicts import PROGRAM, TIME
from ..history.change_points import ChangePoint, find_change_points
from ..history.known import KnownChangePoint
from ..history.series import Series, gather_series
from .changes import TONES
from .doubts import LONGEST_REASON
from .names import LONGEST_NAME, make_fragment
from .runs import MachineRuns

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
