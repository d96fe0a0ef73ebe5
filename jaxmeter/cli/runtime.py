"""Steps of other verbs: Check that a new run would use the Python and the image of an earlier run."""

from __future__ import annotations

from typing import Annotated

import typer

from jaxmeter.cli.complaints import complain
from jaxmeter.cli.inputs import load_one
from jaxmeter.reporting.compare.conditions import describe_other_runtime, make_runtime, read_runtime
from jaxmeter.reporting.compare.gate import UNDECIDED


def command(
    baseline: Annotated[str, typer.Argument(metavar="BASELINE", help="Folder or URL of the earlier run.")],
    python: Annotated[
        str, typer.Option("--python", metavar="VERSION", help="Python version of the new run, such as 3.13.")
    ],
    image: Annotated[
        str,
        typer.Option("--image", metavar="IMAGE", help="Container image of the new run, as NAME and ID; default: none."),
    ] = "",
) -> None:
    """Exit code 3, with one sentence: times would not be comparable."""
    before = load_one(baseline).manifest
    sentence = describe_other_runtime(read_runtime(before), make_runtime(python, image), before.backend)
    if sentence:
        complain(sentence, "warning")
        raise typer.Exit(UNDECIDED)
