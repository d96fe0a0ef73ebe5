"""Where runs were made: runs of one place are one device's history, of which the newest leads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .runs import LabelledRun, name_device


@dataclass(frozen=True)
class Place:
    """A backend of a machine.

    Args:
      runs: Its runs, from the oldest to the newest; at least one.
    """

    runs: tuple[LabelledRun, ...]

    @property
    def newest(self) -> LabelledRun:
        """The run whose numbers are told."""
        return self.runs[-1]

    @property
    def name(self) -> str:
        """`cpu: AMD EPYC`."""
        return f"{self.newest.manifest.backend}: {name_device(self.newest.run)}"


def group_places(runs: Sequence[LabelledRun]) -> tuple[Place, ...]:
    """The places of runs, the one with the newest run first. A machine without a name is known by its device."""
    found: dict[tuple[str, str], list[LabelledRun]] = {}
    for run in sorted(runs, key=lambda one: (one.manifest.started, one.run_id)):
        machine = run.manifest.machine or name_device(run.run)
        found.setdefault((run.manifest.backend, machine), []).append(run)
    places = (Place(tuple(own)) for own in found.values())
    return tuple(sorted(places, key=lambda place: place.newest.manifest.started, reverse=True))
