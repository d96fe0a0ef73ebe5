"""Observations of a machine: rows for the doctor's table, and problems that prevent a run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ObservationState(StrEnum):
    """How a thing is, in the word that is shown."""

    OK = "ok"
    NOTE = "note"
    """Nothing is wrong; good to know."""
    NOISY = "noisy"
    """Measuring works, and times are longer or vary more than they have to."""
    MISSING = "missing"
    """What is asked for cannot be done without it."""
    UNKNOWN = "not known"


@dataclass(frozen=True)
class Observation:
    """One row of the table.

    Args:
      name: What was looked at.
      state: How it is.
      finding: What was found, a phrase.
      remedy: What to do; empty where there is nothing to do.
    """

    name: str
    state: ObservationState
    finding: str
    remedy: str = ""


@dataclass(frozen=True)
class Obstacle:
    """A problem that prevents a run (or, as a warning, what will be missing) and its remedy."""

    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.what}: {self.remedy}"
