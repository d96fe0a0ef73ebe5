"""`jaxmeter reproduce`: a zip for a bug report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jaxmeter.cli.complaints import complain, give_up, write_file
from jaxmeter.cli.inputs import FOLDER, load_one
from jaxmeter.harness.record.wording import visible
from jaxmeter.reporting.reproduce import NothingToReproduceError, find_earlier, find_subject, make_zip


def command(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run's folder or URL.")],
    case: Annotated[str, typer.Option(help="Name of the case, or what no other case matches; * is any text.")],
    variant: Annotated[str | None, typer.Option(help="Which variant; needed where several keep a program.")] = None,
    before: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="An earlier run, such as of an older release: add its program and numbers."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The file; default: reports/<case>-<variant>.zip.")] = None,
) -> None:
    """It takes one variant of one case."""
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
