"""Schedule: Download what images are made of, for a machine without a network."""

from __future__ import annotations

from typing import Annotated

import typer

from jaxmeter.cli.ending import FINE
from jaxmeter.cli.launching import WITHOUT_HELP, end
from jaxmeter.launch.prefetch import download_asked_wheels
from jaxmeter.launch.shell import find_checkout

SETTINGS = WITHOUT_HELP


def command(words: Annotated[list[str] | None, typer.Argument(metavar="[LOCK...] [OPTION...]")] = None) -> None:
    """LOCK is cpu by default; --help prints the options."""
    end(lambda: _write(words or []))


def _write(words: list[str]) -> int:
    download_asked_wheels(words, find_checkout("an image"))
    return FINE
