"""`history` says since which run a number is another, over many runs; also as a file for other tools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec
from rich.console import Console
from rich.text import Text

from harness.record.patterns import match_cases

from . import terminal
from .compare.findings import TIME
from .console import print_lines
from .history.change_points import FEWEST
from .history.clocks import find_clock_faults
from .history.known import KnownStep
from .history.steps import Step, is_long_enough
from .load import Loaded
from .text import counted
from .view.changes import TONES
from .view.page_model import Tone
from .view.places import group_places
from .view.runs import label_runs
from .view.steps import PlaceSteps, describe_steps, gather_steps, label, write_levels


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


def show(found: Sequence[PlaceSteps], console: Console) -> None:
    """Prints the steps, by the first run that has them."""
    print_lines((line for one in found for line in _list_lines(one)), console)


def _list_lines(found: PlaceSteps) -> Iterator[Text]:
    yield Text(f"{found.place.name}: {describe_steps(found)}", "bold")
    for (first, last), steps in groupby(found.steps, key=lambda one: (one.first, one.last)):
        own = list(steps)
        changed = "; ".join(filter(None, (own[0].commits, own[0].versions))) or "nothing that is recorded changed"
        yield Text(f"since run {first}, begun {own[0].began[:16].replace('T', ' ')}, after {last}: {changed}")
        yield from map(_write_line, own)
    short = sum(one.metric == TIME and not is_long_enough(one) for one in found.series)
    if short:
        times = counted(short, "series of times has", "series of times have")
        yield Text(f"{times} fewer than {FEWEST} clean runs: too few to tell a step", "dim")
    if contended := sum(one.contended for one in found.series):
        yield Text(f"{counted(contended, 'time')} left out as contended", "dim")


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
            "place": one.place.name,
            "machine": one.place.newest.manifest.machine,
            "runs": [run.run_id for run in one.place.runs],
            "series": len(one.series),
            "steps": [{**msgspec.to_builtins(step), "effect": step.effect} for step in one.steps],
        }
        for one in found
    ]
    return msgspec.json.format(msgspec.json.encode({"places": places, "warnings": list(faults)}), indent=2) + b"\n"
