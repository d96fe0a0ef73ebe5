"""Schedule: Build the container images of a checkout before they are needed."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from jaxmeter.cli.ending import FINE
from jaxmeter.cli.launching import WITHOUT_HELP, end
from jaxmeter.launch.prefetch import build_asked_images
from jaxmeter.launch.shell import find_checkout

SETTINGS = WITHOUT_HELP


def command(words: Annotated[list[str] | None, typer.Argument(metavar="[LOCK...] [OPTION...]")] = None) -> None:
    """LOCK is cpu by default; --help prints the options."""
    end(lambda: _write(words or []))


def _write(words: list[str]) -> int:
    build_asked_images(words, os.environ, find_checkout("an image"))
    return FINE
