"""Measure: Report what disturbs measurements on this machine, and the remedy."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from jaxmeter.cli.launching import FORWARDS, end
from jaxmeter.launch.doctor.examination import examine
from jaxmeter.launch.shell import PACKAGE

SETTINGS = FORWARDS


def command(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[BACKEND...] [OPTION...]", help="Default: cpu. Options: --runtime, --base-image, --cuda."
        ),
    ] = None,
) -> None:
    """Exit code 2: a backend cannot be measured here."""
    end(lambda: examine(words or [], os.environ, PACKAGE.parent))
