"""What a machine's self-test found, and where it is kept for the runs that follow on that machine."""

from __future__ import annotations

from pathlib import Path

import msgspec

from jaxmeter.harness.record.files import SELF_TESTS, RecordError, name_file, read_json, write_json

LADDER = (0.01, 0.02, 0.03, 0.05, 0.07, 0.10, 0.15, 0.20, 0.30, 0.50)
"""Differences that are tried, as shares; finer steps than these would be noise of some ten ratios."""

FOUND = 0.95
"""Of the ratios, in which a difference has to be found: the goal that our own benchmarks have for one of 5 %."""


MOST_COUNTED = 10**9
"""A larger count is a damaged file."""


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """Ratios of equal programs, whose true value is 1: how often they were called different, which intervals held 1.

    Args:
      compared: Ratios that have an interval.
      differ: Of those, how many were called different: falsely.
      intervals: How many intervals were asked whether they hold the value that they should.
      held_shown, held_decisive: How many of those that are shown, and of those that verdicts go by, hold it.
      smallest_difference: The smallest of LADDER that is found in FOUND of the ratios; None where none is.
    """

    compared: int
    differ: int
    intervals: int
    held_shown: int
    held_decisive: int
    smallest_difference: float | None = None

    @property
    def is_sound(self) -> bool:
        """Whether these can have been counted."""
        parts = (self.differ, self.compared), (self.held_shown, self.intervals), (self.held_decisive, self.intervals)
        is_share = self.smallest_difference is None or 0 < self.smallest_difference < 1
        return is_share and all(0 <= part <= whole <= MOST_COUNTED for part, whole in parts)


class SelfTest(msgspec.Struct, frozen=True, kw_only=True):
    """One implementation twice, in every case and in several runs, on one machine.

    Args:
      at: When it ended.
      packages: Versions of jax and jaxlib, with which it was made; they are no part of the machine's name.
      runs: Repeated runs, one after the other.
      processes: Timing processes in all of them.
      shown_confidence, confidence: Of the intervals that are shown, and of those that verdicts go by.
      minimum_effect: The smallest difference worth a verdict.
      speedups: Of one program over its A/A control, interleaved in the same processes.
      times: Of one program in two runs, normalised; None where there is no such speed.
    """

    machine: str
    at: str
    tool_version: str
    packages: dict[str, str]
    runs: int
    cases: int
    processes: int
    shown_confidence: float
    confidence: float
    minimum_effect: float
    speedups: Tally
    times: Tally | None = None

    @property
    def is_sound(self) -> bool:
        """Whether all of it can have been measured; else a file is damaged."""
        counts, shares = (self.runs, self.cases, self.processes), (self.shown_confidence, self.confidence)
        tallies = [tally for tally in (self.speedups, self.times) if tally is not None]
        return (
            all(0 <= number <= MOST_COUNTED for number in counts)
            and all(0 < share < 1 for share in (*shares, self.minimum_effect))
            and all(tally.is_sound for tally in tallies)
        )


def locate_self_test(out: Path, machine: str) -> Path:
    """Where a machine's self-test lies, in the folder of its runs."""
    return out / SELF_TESTS / f"{name_file(machine)}.json"


def keep_self_test(out: Path, self_test: SelfTest) -> Path:
    """Writes it in place of an older one; returns where it lies."""
    path = locate_self_test(out, self_test.machine)
    write_json(path, self_test)
    return path


def find_self_test(out: Path, machine: str) -> SelfTest | None:
    """The machine's own, or None where there is none.

    Raises:
      RecordError: It is damaged, or another machine's.
    """
    path = locate_self_test(out, machine)
    if not path.exists():
        return None
    self_test = read_json(path, SelfTest)
    if not self_test.is_sound:
        raise RecordError(f"{path}: damaged, it contains impossible counts or shares")
    if self_test.machine != machine:
        raise RecordError(f"{path}: the self-test of another machine, {self_test.machine}")
    return self_test
