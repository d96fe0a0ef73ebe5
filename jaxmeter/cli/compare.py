"""Compare: Report what changed between two runs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from jaxmeter.cli.complaints import complain, write_file
from jaxmeter.cli.inputs import LONGEST_NAME, BudgetsFile, MarkdownFile, MinEffect, VerdictFile, load_one, read_limits
from jaxmeter.document import markdown, terminal
from jaxmeter.harness.record import Manifest
from jaxmeter.harness.record.wording import shorten
from jaxmeter.reporting.compare import gate
from jaxmeter.reporting.compare.budgets import Budgets
from jaxmeter.reporting.compare.changes import compare_runs
from jaxmeter.reporting.compare.gate import Judgement, encode_suspects, judge_alone
from jaxmeter.reporting.compare.verdicts import Changes
from jaxmeter.reporting.view.changes import describe_comparison, encode_verdict


def judge_runs(
    baseline: str,
    candidate: str,
    *,
    confirmed_by: str | None,
    exact: bool,
    min_effect: str,
    budgets_file: Path | None,
    markdown_file: Path | None,
    verdict_file: Path | None,
) -> NoReturn:
    """Judge two runs, print the verdict and exit with its code.

    Args:
      confirmed_by: A run of `run --suspects`, by which suspected changes are confirmed or rejected.
      exact: Whether only counts and planned memory are judged, no times.
    """
    effect, budgets = read_limits(min_effect, budgets_file)
    before, after = load_one(baseline), load_one(candidate)
    _check_roles(before.manifest, after.manifest)
    again = None if confirmed_by is None else load_one(confirmed_by)
    if again is not None and again.manifest.against != before.manifest.run_id:
        raise typer.BadParameter(f"--confirmed-by {confirmed_by}: this run was not measured --against {baseline}")
    changes, judgement = gate.judge_runs(before, after, effect, budgets, confirmed_by=again, exact=exact)
    warn_of_unused(budgets, changes)
    write_changes(changes, judgement, markdown_file, verdict_file)
    terminal.show(describe_comparison(changes, judgement))
    raise typer.Exit(judgement.code)


def _check_roles(before: Manifest, after: Manifest) -> None:
    """Raise an error if both runs are the same, in the wrong order, or the later one only confirms another."""
    if before.run_id == after.run_id:
        raise typer.BadParameter(f"BASELINE and CANDIDATE are the same run, {before.run_id}; give two runs")
    if before.against == after.run_id:
        raise typer.BadParameter(f"{before.run_id} was measured --against {after.run_id}: give the latter as BASELINE")
    if after.confirms:
        raise typer.BadParameter(
            f"{after.run_id} timed suspects only: give the run that it confirms as CANDIDATE, and it as --confirmed-by"
        )


def warn_of_unused(budgets: Budgets, changes: Changes) -> None:
    """Warn of budgets that match no case."""
    cases = {f"{change.suite}/{change.case}" for change in changes.entries}
    for pattern in budgets.find_unused(cases | set(changes.names)):
        complain(f'the budget of "{shorten(pattern, LONGEST_NAME)}" matches no case', "warning")


def write_changes(
    changes: Changes, judgement: Judgement | None, markdown_file: Path | None, verdict_file: Path | None
) -> None:
    """Write what changed to the files that were asked for."""
    if markdown_file is not None:
        text = markdown.write(describe_comparison(changes, judgement, in_full=True))
        write_file(markdown_file, text.encode("utf-8", "replace"))
    if verdict_file is not None:
        write_file(verdict_file, encode_verdict(changes, judgement))


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
