"""The run that a command line asks for: its folder is known before the harness starts, so the report finds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from jaxmeter.harness.record import RecordError, RunFolder
from jaxmeter.harness.record.files import SELF_TESTS, read_bytes
from jaxmeter.launch.options import UsageError, read_options

DEFAULT_OUT = "results"

WITH_CAPTURES = "--with-captures"
"""The option of `jaxmeter push` and `jaxmeter night begin` that sends profiler captures, too."""

PAGES = Path("reports")
"""Where the report writes its pages, as `jaxmeter report` calls it."""

PROGRAMS = ("--probe", "compilation", "--probe", "memory")
"""Options that measure only the programs of an environment, without the time of a call."""

CAPTURE = ("--probe", "trace")
"""How to record which operations take the time. A release before 0.7.2 records that it cannot."""

EXACT = (*PROGRAMS, "--processes", "1")
"""How to measure what follows from programs alone."""


@dataclass(frozen=True)
class PlannedRun:
    """What the harness is called with, and where it will write.

    Args:
      verb: The command of the harness.
      is_reported: Whether a page of it follows by itself.
      finish: How it is gone on with once it was interrupted, where that is not by --resume.
    """

    arguments: tuple[str, ...]
    folder: Path
    is_rehearsal: bool
    verb: str = "run"
    is_reported: bool = True
    finish: str = ""

    @property
    def page(self) -> Path:
        """The file of its report."""
        return PAGES / f"report-{self.folder.name}.html"

    def can_be_reported(self, harness_code: int) -> bool:
        """Whether a page can be made of what the harness, ended with this exit code, has left."""
        return self.is_reported and self.has_measured(harness_code)

    def has_ended(self) -> bool:
        """Whether it is whole: what stores take."""
        return has_ended(self.folder)

    def has_measured(self, harness_code: int) -> bool:
        """Whether the harness left a run, complete (0) or not (3)."""
        return harness_code in (0, 3) and not self.is_rehearsal and has_begun(self.folder)


def has_begun(folder: Path) -> bool:
    """Return whether a folder holds a run, maybe one that has not ended."""
    return RunFolder(folder).manifest.is_file()


def has_ended(folder: Path) -> bool:
    """Return whether a folder holds a whole run."""
    return RunFolder(folder).mark.is_file()


def read_record(path: Path) -> Any:
    """Return what a file of a run holds, of any version.

    Raises:
      RecordError: It cannot be read, or is no JSON.
    """
    try:
        return msgspec.json.decode(read_bytes(path))
    except (msgspec.DecodeError, RecursionError) as error:
        raise RecordError(f"{path}: cannot be read: {error}") from error


def is_store(out: str) -> bool:
    """Whether it names a bucket, or another store, and no folder."""
    return "://" in out


def take_store(arguments: Sequence[str]) -> tuple[str | None, list[str], list[str]]:
    """The store that `--out` names, options of the push, and the arguments with which the run is first kept here.

    Of a folder the store is None.

    Raises:
      UsageError: Captures are to be pushed, and there is no store.
    """
    given = read_options(arguments, "--out", flags=(WITH_CAPTURES,))
    out = given.get("--out")
    if out is not None and is_store(out):
        return out, given.list_words(WITH_CAPTURES), given.rest
    if WITH_CAPTURES in given:
        raise UsageError(f"{WITH_CAPTURES} is about a store, --out s3://bucket/folder; a run here keeps its captures")
    return None, [], list(arguments)


def plan_run(arguments: Sequence[str], new_id: str) -> PlannedRun:
    """The run that these arguments of the harness describe; without --run-id or --resume it is called `new_id`."""
    given = read_options(arguments, "--out", "--run-id", "--resume")
    # A run is resumed by its folder or by its id; the harness distinguishes them by the same rule.
    out, name, resumed = Path(given.get("--out") or DEFAULT_OUT), given.get("--run-id"), given.get("--resume")
    return PlannedRun(
        arguments=(*arguments, *(() if name or resumed else ("--run-id", new_id))),
        folder=Path(resumed) if resumed and Path(resumed).is_dir() else out / (resumed or name or new_id),
        is_rehearsal="--dry-run" in arguments,
    )


def plan_beside(
    baseline: Path, arguments: Sequence[str], new_id: str, suspects: Path | None = None, other: Path | None = None
) -> PlannedRun:
    """Plan a run that is interleaved with an earlier one, for a gate, which makes its own report.

    Args:
      suspects: The file with the suspects that it confirms; it then times nothing else.
      other: The python of the earlier run's environment, which takes turns with today's.
    """
    confirming = () if suspects is None else ("--suspects", str(suspects))
    beside = ("--against", str(baseline), *confirming, *(() if other is None else ("--lock-step", str(other))))
    return replace(plan_run((*arguments, *beside), new_id), is_reported=False)


def plan_self_test(arguments: Sequence[str]) -> PlannedRun:
    """The self-test that these arguments of the harness describe: it leaves a file, and no run to report on."""
    out = Path(read_options(arguments, "--out").get("--out") or DEFAULT_OUT)
    return PlannedRun(tuple(arguments), out / SELF_TESTS, is_rehearsal=False, verb="self-test")
