"""A verdict on a run that was measured `--against` an earlier one."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import typer

from jaxmeter.cli.findings import warn_of_unused, write_findings
from jaxmeter.cli.inputs import load_one, read_limits
from jaxmeter.harness.record import Manifest
from jaxmeter.reporting.compare.changes import compare_runs
from jaxmeter.reporting.compare.findings import leave_out_times, merge
from jaxmeter.reporting.compare.gate import judge
from jaxmeter.reporting.render import compare as render
from jaxmeter.reporting.render.console import open_console


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
