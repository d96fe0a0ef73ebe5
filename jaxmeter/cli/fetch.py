"""Store: Copy a run of a store into the cache, and print its folder."""

from __future__ import annotations

from typing import Annotated

import typer

from jaxmeter.cli.complaints import end_if_refused, report_store_errors
from jaxmeter.reporting.store.fetch import fetch_whole


def command(
    url: Annotated[str, typer.Argument(metavar="URL", help="URL of a run in a store: s3://bucket/folder/RUN.")],
) -> None:
    """The copy includes the run's programs."""
    refused: list[str] = []
    with report_store_errors():
        typer.echo(str(fetch_whole(url, note=refused.append)))
    end_if_refused(refused)
