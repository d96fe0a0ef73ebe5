"""Store: Copy a run into a store, whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jaxmeter.cli.complaints import end_if_refused, report_store_errors
from jaxmeter.document import numbers
from jaxmeter.harness.record import RunFolder
from jaxmeter.harness.record.wording import counted, visible
from jaxmeter.reporting.store.push import OPTION, describe_left_out, push


def command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a finished run.")],
    url: Annotated[
        str,
        typer.Argument(metavar="URL", help="URL of a store: s3://bucket/folder, gs://bucket/folder, file:///folder."),
    ],
    with_captures: Annotated[
        bool, typer.Option(OPTION, help="Also send profiler captures; default: keep them on this machine.")
    ] = False,
) -> None:
    """Files that the store holds already are not sent again. Nothing is removed."""
    with report_store_errors():
        pushed = push(RunFolder(run), url, with_captures=with_captures)
    size = numbers.memory(pushed.size_bytes)
    sent = "was there already" if not pushed.sent else f"sent {counted(pushed.sent, 'file')}"
    left_out = f"; {describe_left_out(pushed.left_out)}" if pushed.left_out else ""
    typer.echo(visible(f"{pushed.url}: {counted(pushed.files, 'file')}, {size}; {sent}{left_out}"))
    end_if_refused(pushed.refused)
