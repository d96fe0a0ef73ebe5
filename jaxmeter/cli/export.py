"""Report: Write runs as a table: one row per case, variant and metric."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jaxmeter.cli.complaints import complain, give_up, write_file
from jaxmeter.cli.inputs import FOLDER, LONGEST_NAME, Last, Runs, Since, load_any, name_report
from jaxmeter.harness.record.wording import shorten, visible
from jaxmeter.reporting.frame import TABLES
from jaxmeter.reporting.render.export import FORMATS, ExportError


def command(
    runs: Runs,
    to: Annotated[str, typer.Option(metavar="FORMAT", help=f"One of {', '.join(FORMATS)}.")] = "csv",
    table: Annotated[
        str,
        typer.Option(metavar="TABLE", help=f"One of {', '.join(TABLES)}: operations and ledger come from captures."),
    ] = "metrics",
    out: Annotated[Path | None, typer.Option(help="File to write; default: reports/export-<run ids>.<format>.")] = None,
    since: Since = "",
    last: Last = None,
) -> None:
    """Runs that cannot be read are named and left out."""
    if to not in FORMATS:
        give_up(f"no format '{shorten(to, LONGEST_NAME)}'; formats are {', '.join(FORMATS)}")
    if table not in TABLES:
        give_up(f"no table '{shorten(table, LONGEST_NAME)}'; tables are {', '.join(TABLES)}")
    loaded = load_any(runs, since, last)
    for warning in loaded.warnings:
        complain(warning, "warning")
    write, ending = FORMATS[to]
    try:
        data = write(loaded, table)
    except ExportError as error:
        give_up(str(error))
    of_table = "" if table == "metrics" else f"-{table}"
    path = out if out is not None else FOLDER / f"export-{name_report(loaded.runs)}{of_table}.{ending}"
    write_file(path, data)
    typer.echo(visible(str(path)))
