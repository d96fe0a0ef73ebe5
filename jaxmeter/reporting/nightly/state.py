"""A nightly run in progress: small files next to the runs, so that a crash at any time loses and repeats nothing.

OUT/.night/night.json      which runs it is made of; gone when its verdict is stored
OUT/.night/waiting/RUN.json  the same of an earlier nightly run that has ended and that the store has not received
OUT/.night/measure         arguments of the harness, one a line, while there is something to measure
OUT/.night/confirm-last    the same, while there is something to confirm next to the last good run
OUT/.night/confirm-pinned  the same next to the pinned run
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path

import msgspec

from jaxmeter.harness.record import RecordError, RunFolder, read_json, write_bytes, write_json

from ..text import hide_home

FOLDER = ".night"
STATE = "night.json"
WAITING = "waiting"
MEASURE = "measure"
PATHS = ("--suites", "--data", "--against")
LONGEST = timedelta(hours=12)
"""From the first step of a nightly run to a restart of it: later, the next one is due, and the machine another."""


class NightlyError(Exception):
    """A nightly run that cannot go on; the message says what to do. Exit code 2."""


class EarlierRun(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier run that a nightly run is compared with.

    Args:
      role: `last` or `pinned`.
      run: Its id.
      source: How it was named: its id in the store, a URL or a folder.
      folder: Where it can be read here.
      again: Id of the run that confirms what is suspected next to it.
    """

    role: str
    run: str
    source: str
    folder: str
    again: str


class NightlyRun(msgspec.Struct, frozen=True, kw_only=True):
    """What a nightly run is made of.

    Args:
      store: URL.
      run: Id of its run.
      begun: When, in UTC.
      measuring: Options of the measurement, as they were given.
      min_effect, budgets: As the gate takes them.
      with_captures: Whether profiler captures are pushed, too.
      beside: The earlier runs that it is compared with. The programs of the first ran interleaved with its own.
      why_alone: Why it is compared with nothing though there are other nightly runs; empty without a reason.
      pinned: The earlier run that the user pins.
      is_chosen: Whether the earlier runs were chosen, which needs the store.
      is_alone: Whether its run is measured next to no earlier one, since the store could not be reached.
    """

    store: str
    run: str
    backend: str
    machine: str
    begun: str
    measuring: tuple[str, ...]
    min_effect: str
    budgets: str | None = None
    with_captures: bool = False
    beside: tuple[EarlierRun, ...] = ()
    why_alone: str = ""
    pinned: str | None = None
    is_chosen: bool = True
    is_alone: bool = False

    @property
    def shown(self) -> tuple[str, ...]:
        """Its options as others may read them."""
        return tuple(map(hide_home, self.measuring))

    @property
    def interleaved(self) -> EarlierRun | None:
        """The earlier run whose programs run next to today's: the last good one, without one the pinned one."""
        return None if self.is_alone else next(iter(self.beside), None)

    def continues(self, other: NightlyRun) -> bool:
        """Return whether the other was asked for in the same words, a few hours later at most."""
        sides = [(nightly.store, nightly.backend, nightly.machine, nightly.measuring) for nightly in (self, other)]
        apart = datetime.fromisoformat(other.begun) - datetime.fromisoformat(self.begun)
        return sides[0] == sides[1] and abs(apart) < LONGEST


def read_state(out: Path) -> NightlyRun | None:
    """Return the nightly run in progress; None where there is none.

    Raises:
      NightlyError: Its file is damaged.
    """
    path = out / FOLDER / STATE
    return _read(path, path.parent) if path.exists() else None


def require_state(out: Path) -> NightlyRun:
    """Return the nightly run in progress.

    Raises:
      NightlyError: There is none, or its file is damaged.
    """
    nightly = read_state(out)
    if nightly is None:
        raise NightlyError(f"{out}: no nightly run is in progress; start one with `jaxmeter night begin`")
    return nightly


def _read(path: Path, at_fault: Path) -> NightlyRun:
    try:
        return read_json(path, NightlyRun)
    except RecordError as error:
        raise NightlyError(f"{error}; remove {at_fault}: the runs next to it are kept") from error


def write_state(out: Path, nightly: NightlyRun) -> None:
    """Keep what a nightly run is made of, before any step of it."""
    write_json(out / FOLDER / STATE, nightly)


def remove_state(out: Path) -> None:
    """Remove the files of the nightly run in progress; its runs stay, and so do those that wait for the store."""
    folder = out / FOLDER
    for path in sorted(folder.iterdir(), key=lambda path: path.name == STATE):  # a kill repeats all of this
        if path.name != WAITING:
            path.unlink()
    _remove_if_empty(folder)


def let_wait(out: Path, nightly: NightlyRun) -> None:
    """End a nightly run that was measured, and keep what it is made of until the store can be reached."""
    write_json(_locate_waiting(out, nightly), nightly)
    remove_state(out)


def list_waiting(out: Path) -> list[NightlyRun]:
    """Return the nightly runs that wait for the store, the first one first.

    Raises:
      NightlyError: A file of one is damaged.
    """
    waiting = [_read(path, path) for path in (out / FOLDER / WAITING).glob("*.json")]
    return sorted(waiting, key=lambda nightly: (nightly.begun, nightly.run))


def end_waiting(out: Path, nightly: NightlyRun) -> None:
    """Forget a nightly run that waited; its runs stay."""
    path = _locate_waiting(out, nightly)
    path.unlink()
    _remove_if_empty(path.parent)
    _remove_if_empty(out / FOLDER)


def _locate_waiting(out: Path, nightly: NightlyRun) -> Path:
    return out / FOLDER / WAITING / f"{nightly.run}.json"


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def has_ended(out: Path, run_id: str) -> bool:
    """Return whether a run of it is whole."""
    return RunFolder(out / run_id).mark.exists()


def write_steps(out: Path, nightly: NightlyRun) -> None:
    """Write what the harness has to measure still: the run, or what is left of it."""
    earlier = nightly.interleaved
    _write_arguments(out, MEASURE, nightly, nightly.run, () if earlier is None else ("--against", earlier.folder))


def write_confirmation(out: Path, nightly: NightlyRun, earlier: EarlierRun, suspects: bytes | None) -> None:
    """Write what has to be confirmed next to an earlier run; nothing where nothing is suspected."""
    name, path = f"confirm-{earlier.role}", out / FOLDER / f"suspects-{earlier.role}.json"
    if suspects is None:
        (out / FOLDER / name).unlink(missing_ok=True)
        return
    write_bytes(path, suspects)
    _write_arguments(out, name, nightly, earlier.again, ("--against", earlier.folder, "--suspects", str(path)))


def _write_arguments(out: Path, name: str, nightly: NightlyRun, run_id: str, more: Sequence[str]) -> None:
    """Write a file that the harness takes its arguments from; none where the run has ended."""
    path, folder = out / FOLDER / name, RunFolder(out / run_id)
    if folder.mark.exists():
        path.unlink(missing_ok=True)
        return
    arguments = ("--backend", nightly.backend, "--machine", nightly.machine, *nightly.measuring, *more)
    going_on = ("--resume", str(folder.path), *_keep_paths(arguments))
    words = going_on if folder.manifest.exists() else (*arguments, "--out", str(out), "--run-id", run_id)
    if any("\n" in word for word in words):
        raise NightlyError("an option with a line break in it; leave it out")
    write_bytes(path, "".join(f"{word}\n" for word in words).encode("utf8", "surrogateescape"))


def _keep_paths(arguments: Sequence[str]) -> list[str]:
    """Return the options with paths, which have to be given again: none is taken from a record."""
    kept: list[str] = []
    words = iter(arguments)
    for word in words:
        name, equals, _ = word.partition("=")
        if name in PATHS:
            kept += [word] if equals else [word, *islice(words, 1)]
    return kept
