"""Compare: Report what differs between the programs that two runs compiled."""

from __future__ import annotations

from typing import Annotated

import typer

from jaxmeter.cli.complaints import complain
from jaxmeter.cli.ending import UNUSABLE
from jaxmeter.cli.inputs import load_one
from jaxmeter.document import terminal
from jaxmeter.reporting.compare.conditions import describe_changed_packages
from jaxmeter.reporting.compare.program_diff import compare_programs, find_surroundings
from jaxmeter.reporting.compare.programs import NothingToCompareError, find_pairs
from jaxmeter.reporting.view.program_diffs import describe_diffs

MOST_REASONS = 3
"""Why there is nothing to compare, besides the first reason."""


def command(
    run_a: Annotated[str, typer.Argument(metavar="RUN_A", help="Folder or URL of the earlier run.")],
    run_b: Annotated[str, typer.Argument(metavar="RUN_B", help="Folder or URL of the later run.")],
    case: Annotated[str, typer.Option(help="Name of a case, its workload or suite; * is any text, ? one character.")],
    variant: Annotated[
        str | None, typer.Option(help="Variant to compare; default: all with a program in both runs.")
    ] = None,
) -> None:
    """It lists what may explain each difference."""
    a, b = load_one(run_a), load_one(run_b)
    try:
        matched = find_pairs(a, b, case, variant)
    except NothingToCompareError as error:
        first, *others = str(error).split("\n")
        complain(first)
        for line in others[:MOST_REASONS]:
            complain(line, "warning")
        if len(others) > MOST_REASONS:
            complain(f"{len(others) - MOST_REASONS} more of these; name one case with --case", "warning")
        raise typer.Exit(UNUSABLE) from None
    for warning in matched.warnings:
        complain(warning, "warning")
    runs = (a.manifest, b.manifest)
    document = describe_diffs(
        (a.manifest.run_id, b.manifest.run_id),
        [compare_programs(pair) for pair in matched.pairs],
        find_surroundings(*runs),
        describe_changed_packages(*runs),
    )
    terminal.show(document)
