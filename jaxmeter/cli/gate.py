"""`jaxmeter gate`: a verdict on a run."""

from __future__ import annotations

from typing import Annotated

import typer

from jaxmeter.cli.findings import warn_of_unused, write_findings
from jaxmeter.cli.inputs import BudgetsFile, MarkdownFile, MinEffect, VerdictFile, load_one, read_limits
from jaxmeter.harness.record import Manifest
from jaxmeter.reporting.compare.changes import compare_runs
from jaxmeter.reporting.compare.findings import leave_out_times, merge
from jaxmeter.reporting.compare.gate import judge
from jaxmeter.reporting.render import compare as render
from jaxmeter.reporting.render.console import open_console


def command(
    baseline: Annotated[str, typer.Argument(metavar="BASELINE", help="Folder or URL of the earlier run.")],
    candidate: Annotated[
        str,
        typer.Argument(metavar="CANDIDATE", help="Folder or URL of a run that was measured --against the earlier one."),
    ],
    confirmed_by: Annotated[
        str | None,
        typer.Option(
            "--confirmed-by",
            metavar="RUN",
            help="Folder of a run of `run --suspects`: confirm or reject suspected changes by it.",
        ),
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Judge counts and planned memory of programs only, no times.")
    ] = False,
    min_effect: MinEffect = "3%",
    budgets_file: BudgetsFile = None,
    markdown_file: MarkdownFile = None,
    verdict_file: VerdictFile = None,
) -> None:
    """Exit code 0: passed; 1: a confirmed regression; 3: no reliable answer."""
    effect, budgets = read_limits(min_effect, budgets_file)
    before, after = load_one(baseline), load_one(candidate)
    _check_roles(before.manifest, after.manifest)
    changes = compare_runs(before, after, effect)
    confirmation = None
    if confirmed_by is not None:
        again = load_one(confirmed_by)
        if again.manifest.against != before.manifest.run_id:
            raise typer.BadParameter(f"--confirmed-by {confirmed_by}: this run was not measured --against {baseline}")
        confirmation = compare_runs(before, again, effect, explained_by=after)
    warn_of_unused(budgets, changes)
    if exact:
        changes = leave_out_times(changes)
    judgement = judge(changes, budgets, confirmed_by=confirmation, exact=exact)
    if confirmation is not None and not exact:
        changes = merge(changes, confirmation)
    write_findings(changes, judgement, markdown_file, verdict_file)
    render.show(changes, open_console(), judgement)
    raise typer.Exit(judgement.code)


def _check_roles(before: Manifest, after: Manifest) -> None:
    """Raise an error if both runs are the same, or in the wrong order."""
    if before.run_id == after.run_id:
        raise typer.BadParameter(f"BASELINE and CANDIDATE are the same run, {before.run_id}; give two runs")
    if before.against == after.run_id:
        raise typer.BadParameter(f"{before.run_id} was measured --against {after.run_id}: give the latter as BASELINE")
