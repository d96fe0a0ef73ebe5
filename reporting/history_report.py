"""`history` says since which run a number is another, over many runs; also as a file for other tools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from rich.console import Console
from rich.text import Text

from harness.record.patterns import find_nearest, match_cases, names_of

from . import terminal
from .compare.findings import TIME
from .console import print_lines
from .history.change_points import FEWEST
from .history.clocks import find_clock_faults
from .history.known import KnownStep
from .history.steps import NEAR, Step, is_told_by_time
from .load import Loaded
from .text import counted
from .view.changes import TONES
from .view.page_model import Tone
from .view.places import group_places
from .view.runs import label_runs
from .view.steps import PlaceSteps, describe_steps, gather_steps, label, write_levels

MOST_LINES = 12
"""Of one change; --json has all."""


def find_history(
    loaded: Loaded, known: Sequence[KnownStep], pattern: str, minimum_effect: float
) -> tuple[PlaceSteps, ...]:
    """What changed for good, place by place.

    Args:
      pattern: Of the cases that are looked at, as of `--select`.
    """
    found = gather_steps(group_places(label_runs(loaded.runs)), known, minimum_effect, fewest_runs=1, most_runs=None)
    return tuple(_limit(one, pattern) for one in found)


def _limit(found: PlaceSteps, pattern: str) -> PlaceSteps:
    series = tuple(one for one in found.series if match_cases([one.case], pattern))
    names = {(one.case.suite, one.case.name) for one in series}
    return PlaceSteps(found.place, series, tuple(one for one in found.steps if (one.suite, one.case) in names))


def list_faults(loaded: Loaded) -> list[str]:
    """What makes the order of the runs doubtful."""
    return list(find_clock_faults(one.run for one in loaded.runs))


def find_unused(known: Sequence[KnownStep], loaded: Loaded) -> list[str]:
    """Runs that known steps name, and nobody has read."""
    ids = {one.run.manifest.run_id for one in loaded.runs}
    return [one.run for one in known if one.run not in ids]


def explain_nothing(loaded: Loaded, pattern: str) -> str:
    """Why there is no series."""
    cases = [case for one in loaded.runs for case in one.run.manifest.cases]
    if not match_cases(cases, pattern):
        nearest = find_nearest(pattern, [name for case in cases for name in names_of(case)])
        return f"no case matches --case '{pattern}'{f'; nearest: {nearest}' if nearest else ''}"
    return (
        "no series: a number needs at least two runs of one machine that have it, of one definition and not contended"
    )


def show(found: Sequence[PlaceSteps], console: Console) -> None:
    """Prints the steps, by the first run that has them."""
    print_lines((line for one in found for line in _list_lines(one)), console)


def _list_lines(found: PlaceSteps) -> Iterator[Text]:
    yield Text(f"{found.place.name}: {describe_steps(found)}", "bold")
    for steps in group_steps(found.steps):
        first = steps[0]
        changed = "; ".join(filter(None, (first.commits, first.versions))) or "nothing that is recorded changed"
        about = "about " if all(one.metric == TIME for one in steps) else ""
        yield Text(f"since {about}run {first.first}, begun {first.began[:16].replace('T', ' ')}: {changed}")
        yield from map(_write_line, steps[:MOST_LINES])
        if len(steps) > MOST_LINES:
            yield Text(f"  + {len(steps) - MOST_LINES} more, in --json", "dim")
    short = sum(one.metric == TIME and not is_told_by_time(one) for one in found.series)
    if short:
        times = counted(short, "series of times has", "series of times have")
        yield Text(f"{times} fewer than {FEWEST} clean runs: too few to tell a step", "dim")
    if contended := sum(one.contended for one in found.series):
        yield Text(f"{counted(contended, 'time')} left out as contended", "dim")


def group_steps(steps: Sequence[Step]) -> list[list[Step]]:
    """Steps that one change may have made, the newest first: those of one run, and times within NEAR runs of it."""
    groups: list[list[Step]] = []
    for step in sorted(steps, key=lambda one: (one.metric == TIME, -one.index)):
        near = NEAR if step.metric == TIME else 0
        group = next((one for one in groups if abs(one[0].index - step.index) <= near), None)
        if group is None:
            groups.append([step])
        else:
            group.append(step)
    return sorted(groups, key=lambda one: -one[0].index)


def _write_line(one: Step) -> Text:
    style = terminal.STYLES[Tone.MUTED if one.known else TONES.get(one.finding, Tone.PLAIN)]
    why = one.known or f"likely cause: {one.cause}"
    runs = f"{one.runs[0]} and {counted(one.runs[1], 'run')}"
    return Text(f"  {label(one)}  ", style).append(
        f"{one.case} {one.variant}: {write_levels(one)} ({runs}); {why}", "default"
    )


def encode(found: Sequence[PlaceSteps], faults: Sequence[str]) -> bytes:
    """All steps as JSON, with the effect as a ratio."""
    places = [
        {
            "name": one.place.name,
            "machine": one.place.newest.manifest.machine,
            "runs": [run.run_id for run in one.place.runs],
            "series": len(one.series),
            "steps": [{**msgspec.to_builtins(step), "effect": step.effect} for step in one.steps],
        }
        for one in found
    ]
    return msgspec.json.format(msgspec.json.encode({"places": places, "warnings": list(faults)}), indent=2) + b"\n"
