"""`jaxmeter push`: a run into a store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jaxmeter.cli.complaints import report_store_errors
from jaxmeter.harness.record import RunFolder
from jaxmeter.harness.record.wording import counted, visible
from jaxmeter.reporting import numbers
from jaxmeter.reporting.store.push import push


def command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run that has ended.")],
    url: Annotated[
        str, typer.Argument(metavar="URL", help="A store: s3://bucket/folder, gs://bucket/folder, file:///folder.")
    ],
) -> None:
    """What is there already is not sent again, and nothing is removed."""
    with report_store_errors():
        pushed = push(RunFolder(run), url)
    size = numbers.memory(pushed.size_bytes)
    sent = "was there already" if not pushed.sent else f"sent {counted(pushed.sent, 'file')}"
    typer.echo(visible(f"{pushed.url}: {counted(pushed.files, 'file')}, {size}; {sent}"))
