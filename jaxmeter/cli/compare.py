"""Compare: Report what changed between two runs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from jaxmeter.cli.complaints import write_file
from jaxmeter.cli.inputs import BudgetsFile, MarkdownFile, MinEffect, VerdictFile, load_one, read_limits
from jaxmeter.cli.judging import warn_of_unused, write_changes
from jaxmeter.document import terminal
from jaxmeter.reporting.compare.changes import compare_runs
from jaxmeter.reporting.compare.gate import encode_suspects, judge_alone
from jaxmeter.reporting.view.changes import describe_comparison


class FailOn(StrEnum):
    """What makes `compare` end with 1."""

    CONFIRMED = "confirmed"
    SUSPECTED = "suspected"


def command(
    baseline: Annotated[str, typer.Argument(metavar="BASELINE", help="Folder or URL of the earlier run.")],
    candidate: Annotated[str, typer.Argument(metavar="CANDIDATE", help="Folder or URL of the later run.")],
    fail_on: Annotated[
        FailOn,
        typer.Option("--fail-on", help="End with exit code 1 on confirmed regressions, or on suspected ones, too."),
    ] = FailOn.CONFIRMED,
    min_effect: MinEffect = "3%",
    markdown_file: MarkdownFile = None,
    verdict_file: VerdictFile = None,
    suspects_file: Annotated[
        Path | None,
        typer.Option(
            "--suspects",
            metavar="FILE",
            help="Write the suspected changes, if any, to this file, for `jaxmeter run --suspects`.",
        ),
    ] = None,
    budgets_file: BudgetsFile = None,
) -> None:
    """Exit code 1: a regression; 3: nothing can be compared, or something failed or is gone."""
    effect, budgets = read_limits(min_effect, budgets_file)
    changes = compare_runs(load_one(baseline), load_one(candidate), effect)
    warn_of_unused(budgets, changes)
    judgement = judge_alone(changes, budgets, count_suspected=fail_on is FailOn.SUSPECTED)
    reported = judgement if judgement.code else None
    if suspects_file is not None:
        write_file(suspects_file, encode_suspects(changes, budgets))
    write_changes(changes, reported, markdown_file, verdict_file)
    # In the terminal, what takes the suspects judges.
    terminal.show(describe_comparison(changes, reported if suspects_file is None else None))
    raise typer.Exit(judgement.code)
