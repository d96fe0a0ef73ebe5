"""Report: Write a zip for a bug report: one program, its results, and a script for jax and flatbuffers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jaxmeter.cli.complaints import complain, give_up, write_file
from jaxmeter.cli.inputs import FOLDER, load_one
from jaxmeter.harness.record.wording import visible
from jaxmeter.reporting.reproduce import NothingToReproduceError, find_earlier, find_subject, make_zip


def command(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Folder or URL of a run.")],
    case: Annotated[
        str,
        typer.Option(
            help="Name of the case, or a pattern that matches only this case; * is any text, ? one character."
        ),
    ],
    variant: Annotated[
        str | None, typer.Option(help="Variant; required where several variants keep a program.")
    ] = None,
    before: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            help="Folder or URL of an earlier run, such as of an older release; its program and numbers are added.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File to write; default: reports/<case>-<variant>.zip.")] = None,
) -> None:
    """The zip holds one variant of one case."""
    warnings: list[str] = []
    try:
        subject = find_subject(load_one(run), case, variant)
        earlier = None if before is None else find_earlier(load_one(before), subject)
        data = make_zip(subject, warnings, earlier)
    except NothingToReproduceError as error:
        give_up(str(error))
    for warning in warnings:
        complain(warning, "warning")
    path = out if out is not None else FOLDER / f"{subject.name}.zip"
    write_file(path, data)
    typer.echo(visible(str(path)))
