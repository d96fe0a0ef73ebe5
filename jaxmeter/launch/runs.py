"""The run that a command line asks for: its folder is known before the harness starts, so the report finds it."""

from __future__ import annotations

import json
import secrets
import stat
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jaxmeter.launch.options import UsageError, read_options

DEFAULT_OUT = "results"

MANIFEST = "manifest.json"
"""The first file of a run. The launcher imports nothing; a test holds that the harness calls it the same."""

MARK = "run.json"
"""The harness's name for the last file of a run that has ended."""

SELF_TESTS = ".self-tests"
"""The harness's name for the folder next to the runs that contains self-tests."""

WITH_CAPTURES = "--with-captures"
"""The option of `jaxmeter push` and `jaxmeter night begin` that sends profiler captures, too."""

PAGES = Path("reports")
"""Where the report writes its pages, as `jaxmeter report` calls it."""

TOKEN_DIGITS = 7
"""28 random bits: two runs started in the same second, by jobs of one array, still get folders of their own."""

PROGRAMS = ("--probe", "compilation", "--probe", "memory")
"""Options that measure only the programs of an environment, without the time of a call."""

CAPTURE = ("--probe", "trace")
"""How to record which operations take the time. A release before 0.7.2 records that it cannot."""

EXACT = (*PROGRAMS, "--processes", "1")
"""How to measure what follows from programs alone."""

LARGEST_RECORD = 256 * 2**20
"""Bytes of a file of a run, as the harness allows them; a run may come from anywhere."""


@dataclass(frozen=True)
class Run:
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
        return (self.folder / MARK).is_file()

    def has_measured(self, harness_code: int) -> bool:
        """Whether the harness left a run, complete (0) or not (3)."""
        return harness_code in (0, 3) and not self.is_rehearsal and (self.folder / MANIFEST).is_file()


def read_record(path: Path) -> Any:
    """What a file of a run holds. A pipe would never answer, and a device never end; so neither is opened.

    Raises:
      OSError: It cannot be read.
      ValueError: It is no JSON, no regular file, or too large.
    """
    found = path.stat()
    if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST_RECORD:
        raise ValueError(f"{path} is no regular file of at most {LARGEST_RECORD} bytes")
    return json.loads(path.read_text(encoding="utf8"))


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


def new_run_id(backend: str, *, now: datetime | None = None, token: str | None = None) -> str:
    """A name that sorts by time, such as 2026-08-22T10-15-30Z-cpu-1f0c9a7; some file systems forbid colons."""
    time = (now or datetime.now(UTC)).astimezone(UTC)
    return f"{time:%Y-%m-%dT%H-%M-%SZ}-{backend}-{token or secrets.token_hex()[:TOKEN_DIGITS]}"


def plan_run(arguments: Sequence[str], new_id: str) -> Run:
    """The run that these arguments of the harness describe; without --run-id or --resume it is called `new_id`."""
    given = read_options(arguments, "--out", "--run-id", "--resume")
    # A run is resumed by its folder or by its id; the harness distinguishes them by the same rule.
    out, name, resumed = Path(given.get("--out") or DEFAULT_OUT), given.get("--run-id"), given.get("--resume")
    return Run(
        arguments=(*arguments, *(() if name or resumed else ("--run-id", new_id))),
        folder=Path(resumed) if resumed and Path(resumed).is_dir() else out / (resumed or name or new_id),
        is_rehearsal="--dry-run" in arguments,
    )


def plan_beside(
    baseline: Path, arguments: Sequence[str], new_id: str, suspects: Path | None = None, other: Path | None = None
) -> Run:
    """Plan a run that is interleaved with an earlier one, for a gate, which makes its own report.

    Args:
      suspects: The file with the suspects that it confirms; it then times nothing else.
      other: The python of the earlier run's environment, which takes turns with today's.
    """
    confirming = () if suspects is None else ("--suspects", str(suspects))
    beside = ("--against", str(baseline), *confirming, *(() if other is None else ("--lock-step", str(other))))
    return replace(plan_run((*arguments, *beside), new_id), is_reported=False)


def plan_self_test(arguments: Sequence[str]) -> Run:
    """The self-test that these arguments of the harness describe: it leaves a file, and no run to report on."""
    out = Path(read_options(arguments, "--out").get("--out") or DEFAULT_OUT)
    return Run(tuple(arguments), out / SELF_TESTS, is_rehearsal=False, verb="self-test")
