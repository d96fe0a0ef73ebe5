"""Schedule: Write a schedule of nightly runs."""

from __future__ import annotations

from typing import Annotated

import typer

from jaxmeter.cli.ending import FINE
from jaxmeter.cli.launching import WITHOUT_HELP, end
from jaxmeter.launch.schedule import write_asked_schedule

SETTINGS = WITHOUT_HELP


def command(
    context: typer.Context,
    words: Annotated[list[str] | None, typer.Argument(metavar="ENGINE --store URL --machine NAME [OPTION...]")] = None,
) -> None:
    """ENGINE is kubernetes, jobset, slurm, pyxis, github or systemd; ENGINE --help prints its options."""
    if words == ["--help"]:
        print(context.get_help())
        raise typer.Exit
    end(lambda: _write(words or []))


def _write(words: list[str]) -> int:
    write_asked_schedule(words)
    return FINE
