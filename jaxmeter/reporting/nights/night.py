"""A night that is under way: a small file beside the runs, so that a crash at any time loses and repeats nothing.

OUT/.night/night.json      which runs it is made of; gone when its verdict is kept
OUT/.night/waiting/RUN.json  the same of an earlier night whose run has ended and that the store has not received
OUT/.night/measure         arguments of the harness, one a line, while there is something to measure
OUT/.night/confirm-last    the same, while there is something to confirm beside the last good run
OUT/.night/confirm-pinned  the same beside the pinned one
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
"""From the first step of a night to a restart of it: later, the next nightly run is due, and the machine another."""


class NightError(Exception):
    """A night that cannot go on; the message says what to do. Exit code 2."""


class Beside(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier run that a night is compared with.

    Args:
      role: `last` or `pinned`.
      run: Its id.
      source: How it was named: its id in the store, a URL or a folder.
      folder: Where it can be read here.
      again: Id of the run that confirms what is suspected beside it.
    """

    role: str
    run: str
    source: str
    folder: str
    again: str


class Night(msgspec.Struct, frozen=True, kw_only=True):
    """What a night is made of.

    Args:
      store: URL.
      run: Id of its run.
      begun: When, in UTC.
      measuring: Options of the measurement, as they were given.
      min_effect, budgets: As the gate takes them.
      with_captures: Whether profiler captures are pushed, too.
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
    beside: tuple[Beside, ...] = ()
    why_alone: str = ""
    pinned: str | None = None
    is_chosen: bool = True
    is_alone: bool = False

    @property
    def shown(self) -> tuple[str, ...]:
        """Its options as others may read them."""
        return tuple(map(hide_home, self.measuring))

    def is_same_night(self, other: Night) -> bool:
        """Whether the other was asked for in the same words, a few hours later at most."""
        sides = [(one.store, one.backend, one.machine, one.measuring) for one in (self, other)]
        apart = datetime.fromisoformat(other.begun) - datetime.fromisoformat(self.begun)
        return sides[0] == sides[1] and abs(apart) < LONGEST


def locate(out: Path) -> Path:
    """The folder of a night's own files."""
    return out / FOLDER


def read_night(out: Path) -> Night | None:
    """The nightly run that is under way; None where there is none.

    Raises:
      NightError: Its file is damaged.
    """
    path = locate(out) / STATE
    return _read(path, path.parent) if path.exists() else None


def _read(path: Path, at_fault: Path) -> Night:
    try:
        return read_json(path, Night)
    except RecordError as error:
        raise NightError(f"{error}; remove {at_fault}: the runs next to it are kept") from error


def require_night(out: Path) -> Night:
    """The nightly run that is under way.

    Raises:
      NightError: There is none, or its file is damaged.
    """
    night = read_night(out)
    if night is None:
        raise NightError(f"{out}: no nightly run is in progress; start one with `jaxmeter night begin`")
    return night


def write_night(out: Path, night: Night) -> None:
    """Keeps what a night is made of, before anything of it is done."""
    write_json(locate(out) / STATE, night)


def end_night(out: Path) -> None:
    """Removes a night's own files; its runs stay, and so do nights that wait."""
    for path in sorted(locate(out).iterdir(), key=lambda path: path.name == STATE):  # a kill repeats all of this
        if path.name != WAITING:
            path.unlink()
    with suppress(OSError):  # others wait
        locate(out).rmdir()


def let_wait(out: Path, night: Night) -> None:
    """Ends a night whose run has ended, and keeps what it is made of until the store can be reached."""
    write_json(_locate_waiting(out, night), night)
    end_night(out)


def list_waiting(out: Path) -> list[Night]:
    """The nights that wait for the store, the first one first.

    Raises:
      NightError: A file of one is damaged.
    """
    found = [_read(path, path) for path in (locate(out) / WAITING).glob("*.json")]
    return sorted(found, key=lambda night: (night.begun, night.run))


def end_waiting(out: Path, night: Night) -> None:
    """Forgets a night that waited; its runs stay."""
    path = _locate_waiting(out, night)
    path.unlink()
    for folder in (path.parent, locate(out)):
        with suppress(OSError):  # it holds something
            folder.rmdir()


def _locate_waiting(out: Path, night: Night) -> Path:
    return locate(out) / WAITING / f"{night.run}.json"


def write_steps(out: Path, night: Night) -> None:
    """Writes what the harness has to measure still: the run, or what is left of it."""
    measured = (*_common(night), *_beside_last(night))
    _write_arguments(out, MEASURE, night.run, measured)


def write_confirmation(out: Path, night: Night, beside: Beside, suspects: bytes | None) -> None:
    """Writes what has to be confirmed beside an earlier run; nothing where nothing is suspected."""
    name, path = f"confirm-{beside.role}", locate(out) / f"suspects-{beside.role}.json"
    if suspects is None:
        (locate(out) / name).unlink(missing_ok=True)
        return
    write_bytes(path, suspects)
    arguments = (*_common(night), "--against", beside.folder, "--suspects", str(path))
    _write_arguments(out, name, beside.again, arguments)


def has_ended(out: Path, run_id: str) -> bool:
    """Whether a run of it is whole."""
    return RunFolder(out / run_id).mark.exists()


def _common(night: Night) -> tuple[str, ...]:
    return ("--backend", night.backend, "--machine", night.machine, *night.measuring)


def _beside_last(night: Night) -> tuple[str, ...]:
    """The last good run's programs run beside today's; without one, the pinned run's."""
    return ("--against", night.beside[0].folder) if night.beside and not night.is_alone else ()


def _write_arguments(out: Path, name: str, run_id: str, arguments: Sequence[str]) -> None:
    """A file that the harness takes its arguments from; none where the run has ended."""
    path, folder = locate(out) / name, RunFolder(out / run_id)
    if folder.mark.exists():
        path.unlink(missing_ok=True)
        return
    begun = folder.manifest.exists()
    going_on = ("--resume", str(folder.path), *_keep_paths(arguments))
    words = going_on if begun else (*arguments, "--out", str(out), "--run-id", run_id)
    if any("\n" in word for word in words):
        raise NightError("an option with a line break in it; leave it out")
    write_bytes(path, "".join(f"{word}\n" for word in words).encode("utf8", "surrogateescape"))


def _keep_paths(arguments: Sequence[str]) -> list[str]:
    """The options with paths, which have to be given again: none is taken from a record."""
    kept: list[str] = []
    words = iter(arguments)
    for word in words:
        name, equals, _ = word.partition("=")
        if name in PATHS:
            kept += [word] if equals else [word, *islice(words, 1)]
    return kept
