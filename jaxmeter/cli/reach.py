"""`jaxmeter reach`: a check before anything is measured."""

from __future__ import annotations

from typing import Annotated

import typer

from jaxmeter.cli.complaints import report_store_errors
from jaxmeter.reporting.store.push import reach


def command(
    url: Annotated[str, typer.Argument(metavar="URL", help="A store, as of `push`.")],
) -> None:
    """It uses the credentials that there are."""
    with report_store_errors():
        reach(url)
