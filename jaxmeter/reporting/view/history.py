"""The history of runs: its change points machine by machine, and what makes their order doubtful."""

from __future__ import annotations

from collections.abc import Sequence

from jaxmeter.harness.record.patterns import find_nearest, match_cases, names_of

from ..history.clocks import find_clock_faults
from ..history.known import KnownChangePoint
from ..load import Loaded
from .change_points import MachineChanges, gather_change_points
from .machines import group_by_machine
from .runs import label_runs


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
