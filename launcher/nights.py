"""What `nox -s nightly` was asked for, and the steps of a night that the reporter has written for the harness."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from launcher.options import UsageError, refuse, take_option
from launcher.runs import DEFAULT_OUT, is_store

FOLDER = ".night"
LOCK = ".night.lock"
MEASURE = "measure"
CONFIRM = "confirm-*"
"""Files of arguments, as `jaxmeter.reporting.nights.night` calls them; a test holds that they are the same."""

BEGINNING = ("--baseline", "--budgets", "--min-effect")
ENDING = ("--markdown", "--verdict", "--page")
"""Options of the first and of the last step."""

FORBIDDEN = {
    "--against": "a night is compared with the last good one and with --baseline RUN",
    "--suspects": "a night finds them by itself",
    "--resume": "a night that was cut short goes on by itself",
    "--run-id": "a night names its runs",
    "--lock-step": "a night does so by itself where versions differ",
    "--dry-run": "a night that measures nothing can say nothing; nox -s cpu -- --dry-run shows a plan",
}


@dataclass(frozen=True)
class NightRequest:
    """A night.

    Args:
      store: URL.
      machine: What this machine is called; None where the harness shall say.
      out: Where its runs are kept here.
      beginning, ending: Options of the first and of the last step.
      measuring: Arguments of the measurement, with those of the launcher.
    """

    store: str
    machine: str | None
    out: Path
    beginning: tuple[str, ...]
    ending: tuple[str, ...]
    measuring: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """Where the steps of the night that is under way are."""
        return self.out / FOLDER


def read_night_request(arguments: Sequence[str]) -> NightRequest:
    """`--store URL [--machine NAME] [--baseline RUN] [--budgets FILE] [--markdown FILE] …`, and the measurement's.

    Raises:
      UsageError: No store, or what a night does not take.
    """
    rest = list(arguments)
    refuse(rest, FORBIDDEN)
    store, rest = take_option(rest, "--store")
    if store is None or not is_store(store):
        given = f" (--store {store})" if store else ""
        raise UsageError(f"name a store{given}: nox -s nightly -- --store s3://bucket/folder, or file:///folder")
    machine, rest = take_option(rest, "--machine")
    if machine is not None and not machine.strip():
        raise UsageError("--machine is empty; name this machine, or leave it out")
    out, rest = take_option(rest, "--out")
    if out is not None and is_store(out):
        raise UsageError(f"--out {out}: a folder of this machine; --store names the store")
    beginning, rest = _take(rest, BEGINNING)
    ending, rest = _take(rest, ENDING)
    return NightRequest(store, machine, Path(out or DEFAULT_OUT), beginning, ending, tuple(rest))


@contextmanager
def hold(request: NightRequest) -> Iterator[None]:
    """Keeps other nights out of the folder of this one's runs.

    Raises:
      UsageError: Another night is there, or the folder cannot be written.
    """
    try:
        request.out.mkdir(parents=True, exist_ok=True)
        file = (request.out / LOCK).open("w")
    except OSError as error:
        raise UsageError(f"{request.out}: cannot be written: {error.strerror}; give --out DIR") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"another night is under way in {request.out}; wait for its end, or give this one --out DIR of its own"
            ) from None
        yield


def read_step(path: Path) -> list[str]:
    """The arguments in a file, one from each line."""
    return os.fsdecode(path.read_bytes()).removesuffix("\n").split("\n")


def _take(arguments: Sequence[str], names: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """Options with their values, and what is left."""
    taken: list[str] = []
    rest = list(arguments)
    for name in names:
        value, rest = take_option(rest, name)
        taken += [] if value is None else [name, value]
    return tuple(taken), rest
