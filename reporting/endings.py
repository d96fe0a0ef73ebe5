"""How a command ends that cannot do what was asked: what it says, and its exit code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import typer

from harness.record import write_bytes

from .store.stores import BrokenOffError, StoreError
from .text import visible

UNUSABLE = 2
"""Exit code: nothing could be read, or nothing written."""

BROKEN_OFF = 3
"""Exit code: a store could not be reached; the same command goes on."""


def complain(message: str, kind: str = "error") -> None:
    """Says on stderr what is wrong, or to be known."""
    typer.echo(f"{kind}: {visible(message)}", err=True)


def give_up(message: str, code: int = UNUSABLE) -> NoReturn:
    """Says what is wrong, and ends."""
    complain(message)
    raise typer.Exit(code) from None


@contextmanager
def store_errors() -> Iterator[None]:
    """What a store refuses becomes an exit code; what broke off is none of usage."""
    try:
        yield
    except StoreError as error:
        give_up(str(error))
    except BrokenOffError as error:
        give_up(str(error), BROKEN_OFF)


def write_file(path: Path, data: bytes | None) -> None:
    """Writes a file anew, or removes it where there is nothing to be written."""
    try:
        if str(path) == "-" or (path.exists() and not path.is_file()):  # a device would be replaced, not written to
            give_up(f"{path}: no file that can be written anew; choose another")
        if data is None:
            path.unlink(missing_ok=True)
        else:
            write_bytes(path, data)
    except (OSError, ValueError) as error:
        give_up(f"{path}: cannot be written: {error}; choose another file with --out")
