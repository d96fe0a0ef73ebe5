"""Steps of other verbs: Check that a store can be reached."""

from __future__ import annotations

from typing import Annotated

import typer

from jaxmeter.cli.complaints import report_store_errors
from jaxmeter.reporting.store.push import reach


def command(
    url: Annotated[str, typer.Argument(metavar="URL", help="URL of a store, as for `jaxmeter push`.")],
) -> None:
    """It uses the credentials of the environment."""
    with report_store_errors():
        reach(url)
