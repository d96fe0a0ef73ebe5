"""`history` says since which run a number is another, over many runs; also as a file for other tools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from rich.console import Console
from rich.text import Text

from jaxmeter.harness.record.patterns import find_nearest, match_cases, names_of

from . import terminal
from .compare.findings import TIME
from .console import print_lines
from .history.change_points import NEAR, ChangePoint, is_told_by_time
from .history.clocks import find_clock_faults
from .history.known import KnownChangePoint
from .history.segmentation import FEWEST
from .load import Loaded
from .text import counted
from .view.change_points import MachineChanges, describe_change_points, gather_change_points, label, write_levels
from .view.changes import TONES
from .view.machines import group_by_machine
from .view.page_model import Tone
from .view.runs import label_runs

MOST_LINES = 12
"""Of one change; --json has all."""


def find_history(
    loaded: Loaded, known: Sequence[KnownChangePoint], pattern: str, minimum_effect: float
) -> tuple[MachineChanges, ...]:
    """What changed for good, machine by machine.

    Args:
      pattern: Of the cases that are looked at, as of `--select`.
    """
    found = gather_change_points(
        group_by_machine(label_runs(loaded.runs)), known, minimum_effect, fewest_runs=1, most_runs=None
    )
    return tuple(_limit(one, pattern) for one in found)


def _limit(found: MachineChanges, pattern: str) -> MachineChanges:
    series = tuple(one for one in found.series if match_cases([one.case], pattern))
    names = {(one.case.suite, one.case.name) for one in series}
    return MachineChanges(
        found.machine, series, tuple(one for one in found.change_points if (one.suite, one.case) in names)
    )


def list_faults(loaded: Loaded) -> list[str]:
    """What makes the order of the runs doubtful."""
    return list(find_clock_faults(one.record for one in loaded.runs))


def find_unused(known: Sequence[KnownChangePoint], loaded: Loaded) -> list[str]:
    """Runs that known change points name, and nobody has read."""
    ids = {one.manifest.run_id for one in loaded.runs}
    return [one.run for one in known if one.run not in ids]


def explain_nothing(loaded: Loaded, pattern: str) -> str:
    """Why there is no series."""
    cases = [case for one in loaded.runs for case in one.manifest.cases]
    if not match_cases(cases, pattern):
        nearest = find_nearest(pattern, [name for case in cases for name in names_of(case)])
        return f"no case matches --case '{pattern}'{f'; nearest: {nearest}' if nearest else ''}"
    return (
        "no series: a number needs at least two runs of one machine that have it, of one definition and not contended"
    )


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
        yield Text(f"{times} fewer than {FEWEST} clean runs: too few to tell a change point", "dim")
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
    style = terminal.STYLES[Tone.MUTED if one.known else TONES.get(one.finding, Tone.PLAIN)]
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
                {**msgspec.to_builtins(change_point), "effect": change_point.effect}
                for change_point in one.change_points
            ],
        }
        for one in found
    ]
    return msgspec.json.format(msgspec.json.encode({"machines": machines, "warnings": list(faults)}), indent=2) + b"\n"
