"""What changed for good at each place, over many runs: as lines, and beside the runs of a case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from harness.record.metrics import METRICS
from harness.record.statistics import MINIMUM_EFFECT, Interval

from .. import numbers
from ..compare.findings import PROGRAM, TIME
from ..compare.snapshot import Snapshot
from ..history.known import KnownStep
from ..history.series import Series, gather_series
from ..history.steps import NOTHING_KNOWN, Step, find_steps
from ..text import counted, shorten
from ..write import write
from .cases import Case
from .changes import TONES
from .keys import make_fragment
from .names import LONGEST_NAME
from .page_model import Item, Tone
from .places import Place
from .reasons import LONGEST_REASON

FEWEST_RUNS = 3
"""Of a place; of two, the comparison says what changed."""

MOST_RUNS = 200
"""The newest of a place that a page looks at: more would take it longer than all else."""

KNOWN = "known"
"""What stands in place of the finding where a file of known steps explains it."""


@dataclass(frozen=True)
class PlaceSteps:
    """What changed for good at one place."""

    place: Place
    series: tuple[Series, ...]
    steps: tuple[Step, ...]

    def of(self, case: Case) -> tuple[Step, ...]:
        """Those of a case of the place."""
        wanted = (case.planned.suite, case.planned.name, case.planned.where)
        return tuple(one for one in self.steps if (one.suite, one.case, one.where) == wanted)


def gather_steps(
    places: Iterable[Place],
    known: Sequence[KnownStep] = (),
    minimum_effect: float = MINIMUM_EFFECT,
    *,
    fewest_runs: int = FEWEST_RUNS,
    most_runs: int | None = MOST_RUNS,
) -> tuple[PlaceSteps, ...]:
    """By place, where it has enough runs.

    Args:
      known: Steps that are no news.
      minimum_effect: The smallest change of a time that counts, as a share.
      most_runs: The newest of a place that are looked at; all where None.
    """
    return tuple(_look(place, known, minimum_effect, most_runs) for place in places if len(place.runs) >= fewest_runs)


def _look(place: Place, known: Sequence[KnownStep], minimum_effect: float, most_runs: int | None) -> PlaceSteps:
    runs = place.runs if most_runs is None else place.runs[-most_runs:]
    series = gather_series([Snapshot(run.run, run.common_speed) for run in runs])
    return PlaceSteps(place, series, find_steps(series, known, minimum_effect))


def list_steps(found: Iterable[PlaceSteps]) -> tuple[Item, ...]:
    """A line for each step that is news, the newest first."""
    steps = (step for one in found for step in one.steps if not step.known)
    return tuple(Item(write_step(one), one.finding.value, _link(one), _tone(one)) for one in steps)


def describe_steps(found: PlaceSteps) -> str:
    """`20 runs, 36 series: 2 steps, 1 of them known`."""
    known = sum(bool(one.known) for one in found.steps)
    of_them = f", {known} of them known" if known else ""
    series = counted(len(found.series), "series", "series")
    return f"{counted(len(found.place.runs), 'run')}, {series}: {counted(len(found.steps), 'step')}{of_them}"


def write_step(one: Step) -> str:
    """`selu[n=1] selu:jit: time 11 µs → 12 µs, +9 %, since run A, begun 2026-11-20 (6 and 8 runs); commit a → b; …`."""
    name = " ".join((shorten(one.case, LONGEST_NAME), shorten(one.variant, LONGEST_NAME)))
    about = "about " if one.metric == TIME else ""
    since = f"since {about}run {shorten(one.first, LONGEST_NAME)}, begun {one.began[:10]}"
    sides = f"({one.runs[0]} and {counted(one.runs[1], 'run')})"
    told = f"{name}: {', '.join(filter(None, (write_levels(one), since)))} {sides}"
    return "; ".join((told, *list_reasons(one)))


def list_reasons(one: Step) -> Iterator[str]:
    """What may explain it."""
    if one.known:
        yield shorten(f"known: {one.known}", LONGEST_REASON)
        return
    told = (one.commits, "" if one.cause == NOTHING_KNOWN and one.commits else one.cause)
    yield shorten(f"likely cause: {'; '.join(filter(None, told))}", LONGEST_REASON)


def write_levels(one: Step) -> str:
    """`time 11 µs → 12 µs, +9.1 %`; `program`."""
    if one.before is None or one.after is None:
        return "program"
    metric = METRICS[one.metric]
    title = "time" if one.metric == TIME else metric.title
    return ", ".join(
        filter(None, (f"{title} {write(metric, one.before)} → {write(metric, one.after)}", write_effect(one)))
    )


def write_effect(one: Step) -> str:
    """`+9.1 %`; of a count, and of a program, nothing."""
    if one.effect is None or one.metric in (PROGRAM, "compiles", "recompiles"):
        return ""
    return numbers.change(Interval(one.effect, one.effect, one.effect, 1))[0]


def _link(one: Step) -> str:
    return make_fragment("case", one.suite, one.case)


def _tone(one: Step) -> Tone:
    return TONES.get(one.finding, Tone.PLAIN)


def label(one: Step) -> str:
    """The finding, or that it is known."""
    return KNOWN if one.known else one.finding.value
