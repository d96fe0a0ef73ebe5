"""How a verb ends that cannot do what was asked: what it says, and with which code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import typer

from jaxmeter.cli.ending import INCOMPLETE, UNUSABLE
from jaxmeter.harness.record import write_bytes
from jaxmeter.harness.record.wording import visible
from jaxmeter.reporting.store.stores import BrokenOffError, StoreError


def complain(message: str, kind: str = "error") -> None:
    """Say on stderr what is wrong, or to be known."""
    typer.echo(f"{kind}: {visible(message)}", err=True)


def warn(message: str) -> None:
    """Say on stderr what is to be known."""
    complain(message, "warning")


def give_up(message: str, code: int = UNUSABLE) -> NoReturn:
    """Say what is wrong, and end."""
    complain(message)
    raise typer.Exit(code) from None


def write_file(path: Path, data: bytes | None) -> None:
    """Write a file anew, or remove it where there is nothing to be written."""
    try:
        if str(path) == "-" or (path.exists() and not path.is_file()):  # a device would be replaced, not written to
            give_up(f"{path}: not a regular file, so it cannot be replaced; choose another path")
        if data is None:
            path.unlink(missing_ok=True)
        else:
            write_bytes(path, data)
    except (OSError, ValueError) as error:
        give_up(f"{path}: cannot be written: {error}; choose another file with --out")


def end_if_refused(refused: Sequence[str]) -> None:
    """Name the files that could not be copied, and end with INCOMPLETE, if there are any."""
    for words in refused:
        complain(words)
    if refused:
        raise typer.Exit(INCOMPLETE)


@contextmanager
def report_store_errors() -> Iterator[None]:
    """End with the store's own words where it refuses; with INCOMPLETE where it broke off, and a repetition goes on."""
    try:
        yield
    except StoreError as error:
        give_up(str(error))
    except BrokenOffError as error:
        give_up(str(error), INCOMPLETE)
