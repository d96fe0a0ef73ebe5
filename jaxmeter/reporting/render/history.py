"""Change points of many runs, for a terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from rich.console import Console
from rich.text import Text

from jaxmeter.reporting.compare.verdicts import TIME, encode_fields
from jaxmeter.reporting.history.change_points import NEAR, ChangePoint, is_told_by_time
from jaxmeter.reporting.history.segmentation import FEWEST
from jaxmeter.reporting.render import terminal
from jaxmeter.reporting.render.console import print_lines
from jaxmeter.reporting.text import counted
from jaxmeter.reporting.view.change_points import MachineChanges, describe_change_points, label, write_levels
from jaxmeter.reporting.view.changes import TONES
from jaxmeter.reporting.view.tone import Tone

MOST_LINES = 12
"""Of one change; --json has all."""


def show(found: Sequence[MachineChanges], console: Console) -> None:
    """Prints the change points, by the first run that has them."""
    print_lines((line for one in found for line in _list_lines(one)), console)


def _list_lines(found: MachineChanges) -> Iterator[Text]:
    yield Text(f"{found.machine.name}: {describe_change_points(found)}", "bold")
    for change_points in group_change_points(found.change_points):
        first = change_points[0]
        changed = "; ".join(filter(None, (first.commits, first.versions))) or "nothing that is recorded changed"
        about = "about " if all(one.metric == TIME for one in change_points) else ""
        yield Text(f"since {about}run {first.first}, begun {first.began[:16].replace('T', ' ')}: {changed}")
        yield from map(_write_line, change_points[:MOST_LINES])
        if len(change_points) > MOST_LINES:
            yield Text(f"  + {len(change_points) - MOST_LINES} more, in --json", "dim")
    short = sum(one.metric == TIME and not is_told_by_time(one) for one in found.series)
    if short:
        times = counted(short, "series of times has", "series of times have")
        yield Text(f"{times} fewer than {FEWEST} clean runs: too few to detect a change point", "dim")
    if contended := sum(one.contended for one in found.series):
        yield Text(f"{counted(contended, 'time')} left out as contended", "dim")


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


def _write_line(one: ChangePoint) -> Text:
    style = terminal.STYLES[Tone.MUTED if one.known else TONES.get(one.verdict, Tone.PLAIN)]
    why = one.known or f"likely cause: {one.cause}"
    runs = f"{one.runs[0]} and {counted(one.runs[1], 'run')}"
    return Text(f"  {label(one)}  ", style).append(
        f"{one.case} {one.variant}: {write_levels(one)} ({runs}); {why}", "default"
    )


def encode(found: Sequence[MachineChanges], faults: Sequence[str]) -> bytes:
    """All change points as JSON, with the effect as a ratio."""
    machines = [
        {
            "name": one.machine.name,
            "machine": one.machine.newest.manifest.machine,
            "runs": [run.name for run in one.machine.runs],
            "series": len(one.series),
            "change_points": [
                {**encode_fields(change_point), "effect": change_point.effect} for change_point in one.change_points
            ],
        }
        for one in found
    ]
    return msgspec.json.format(msgspec.json.encode({"machines": machines, "warnings": list(faults)}), indent=2) + b"\n"
