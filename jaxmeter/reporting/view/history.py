"""The history of runs: its change points machine by machine, and what makes their order doubtful."""

from __future__ import annotations

from collections.abc import Sequence

from jaxmeter.harness.record.patterns import find_nearest, match_cases, names_of

from ..history.clocks import find_clock_faults
from ..history.known import KnownChangePoint
from ..load import Loaded
from .change_points import MachineChanges, gather_change_points
from .runs import group_by_machine, label_runs


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
