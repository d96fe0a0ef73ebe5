"""`compare`, `gate`, `history`, `limits`, `runtime`: what changed, and whether that is allowed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from . import compare_report, history_report
from .compare.budgets import Budgets
from .compare.findings import Changes, leave_out_times, merge
from .compare.gate import UNDECIDED, Judgement, judge, judge_alone
from .compare.runtimes import describe_other_runtime, make_runtime, read_runtime
from .compare_report import FailOn
from .console import open_console
from .endings import complain, give_up, write_file
from .inputs import (
    LONGEST_NAME,
    BudgetsFile,
    KnownFile,
    Last,
    MarkdownFile,
    MinEffect,
    Runs,
    Since,
    VerdictFile,
    load_any,
    load_known,
    load_one,
    read_limits,
)
from .load import leave_out_confirming
from .text import shorten, visible

app = typer.Typer()


@app.command()
def compare(
    baseline: Annotated[str, typer.Argument(metavar="BASELINE", help="Folder or URL of the earlier run.")],
    candidate: Annotated[str, typer.Argument(metavar="CANDIDATE", help="Folder or URL of the later run.")],
    fail_on: Annotated[FailOn, typer.Option("--fail-on", help="What ends this command with 1.")] = FailOn.CONFIRMED,
    min_effect: MinEffect = "3%",
    markdown_file: MarkdownFile = None,
    verdict_file: VerdictFile = None,
    suspects_file: Annotated[
        Path | None,
        typer.Option("--suspects", metavar="FILE", help="Write what a run should confirm, if there is anything."),
    ] = None,
    budgets_file: BudgetsFile = None,
) -> None:
    """Says what changed between two runs; 1 where something got worse, 3 where nothing could be compared."""
    effect, budgets = read_limits(min_effect, budgets_file)
    changes = compare_report.compare(load_one(baseline), load_one(candidate), effect)
    _warn_of_unused(budgets, changes)
    judgement = judge_alone(changes, budgets, count_suspected=fail_on is FailOn.SUSPECTED)
    told = judgement if judgement.code else None
    if suspects_file is not None:
        write_file(suspects_file, compare_report.encode_suspects(changes, budgets))
    _write_findings(changes, told, markdown_file, verdict_file)
    # In the terminal, what takes the suspects judges.
    compare_report.show(changes, open_console(), told if suspects_file is None else None)
    raise typer.Exit(judgement.code)


@app.command()
def gate(
    baseline: Annotated[str, typer.Argument(metavar="BASELINE", help="Folder or URL of the earlier run.")],
    candidate: Annotated[str, typer.Argument(metavar="CANDIDATE", help="Folder or URL of a run --against it.")],
    confirmed_by: Annotated[
        str | None,
        typer.Option("--confirmed-by", metavar="RUN", help="Folder of the run that timed the suspects alone."),
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Judge what follows from programs alone, and no time.")
    ] = False,
    min_effect: MinEffect = "3%",
    budgets_file: BudgetsFile = None,
    markdown_file: MarkdownFile = None,
    verdict_file: VerdictFile = None,
) -> None:
    """Judges a run: 0 passed, 1 a confirmed regression, 3 no answer that can be relied on."""
    effect, budgets = read_limits(min_effect, budgets_file)
    before = load_one(baseline)
    changes = compare_report.compare(before, load_one(candidate), effect)
    confirmation = None
    if confirmed_by is not None:
        confirmation = compare_report.compare(before, load_one(confirmed_by), effect)
    _warn_of_unused(budgets, changes)
    if exact:
        changes = leave_out_times(changes)
    judgement = judge(changes, budgets, confirmed_by=confirmation, exact=exact)
    if confirmation is not None and not exact:
        changes = merge(changes, confirmation)
    _write_findings(changes, judgement, markdown_file, verdict_file)
    compare_report.show(changes, open_console(), judgement)
    raise typer.Exit(judgement.code)


@app.command()
def history(
    runs: Runs,
    case: Annotated[str, typer.Option(help="Suite, workload or case name; * is any text, ? one character.")] = "*",
    known_file: KnownFile = None,
    min_effect: MinEffect = "3%",
    since: Since = "",
    last: Last = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output on stdout.")] = False,
) -> None:
    """Says since which run a number of a machine is another, what else changed there, and the likely cause."""
    effect, _ = read_limits(min_effect, None)
    known = load_known(known_file)
    loaded = leave_out_confirming(load_any(runs, since, last))
    found = history_report.find_history(loaded, known, case, effect)
    faults = [*loaded.warnings, *map(visible, history_report.list_faults(loaded))]
    for warning in faults:
        complain(warning, "warning")
    for run in history_report.find_unused(known, loaded):
        complain(f"--known: no run '{shorten(run, LONGEST_NAME)}' is among these", "warning")
    if not any(one.series for one in found):
        give_up(history_report.explain_nothing(loaded, case))
    if as_json:
        sys.stdout.buffer.write(history_report.encode(found, faults))
    else:
        history_report.show(found, open_console())


@app.command()
def limits(min_effect: MinEffect = "3%", budgets_file: BudgetsFile = None) -> None:
    """Only checks that budgets and minimum effect can be used."""
    read_limits(min_effect, budgets_file)


@app.command()
def runtime(
    baseline: Annotated[str, typer.Argument(metavar="BASELINE", help="Folder or URL of the earlier run.")],
    python: Annotated[str, typer.Option("--python", metavar="VERSION", help="Python that a new run would have.")],
    image: Annotated[str, typer.Option("--image", metavar="IMAGE", help="Its image, by name and id.")] = "",
) -> None:
    """Says whether a new run would be of another runtime than an earlier one; 3 where it would, in one sentence."""
    before = load_one(baseline).run.manifest
    sentence = describe_other_runtime(read_runtime(before), make_runtime(python, image), before.backend)
    if sentence:
        complain(sentence, "warning")
        raise typer.Exit(UNDECIDED)


def _warn_of_unused(budgets: Budgets, changes: Changes) -> None:
    """Says which budgets are of no case."""
    for pattern in budgets.find_unused({f"{one.suite}/{one.case}" for one in changes.found} | set(changes.names)):
        complain(f'the budget of "{shorten(pattern, LONGEST_NAME)}" matches no case', "warning")


def _write_findings(
    changes: Changes, judgement: Judgement | None, markdown_file: Path | None, verdict_file: Path | None
) -> None:
    if markdown_file is not None:
        write_file(markdown_file, compare_report.write_markdown(changes, judgement).encode("utf-8", "replace"))
    if verdict_file is not None:
        write_file(verdict_file, compare_report.encode_verdict(changes, judgement))
