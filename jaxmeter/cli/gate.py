"""Compare: Measure interleaved with an earlier run, and decide whether something regressed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jaxmeter.cli.launching import (
    FORWARDS,
    Budgets,
    Markdown,
    MinEffect,
    Runtime,
    Verdict,
    call_elsewhere,
    end,
    is_launched,
    list_words,
    make_shell,
)
from jaxmeter.launch.gate import pass_gate

SETTINGS = FORWARDS

DEFAULT_EFFECT = "3%"


def command(
    context: typer.Context,
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="BASELINE [CANDIDATE] [OPTION...]",
            help="Folder or URL of the earlier run. With a second run, which was measured --against the first one, "
            "nothing is measured.",
        ),
    ] = None,
    confirmed_by: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            help="With a CANDIDATE: folder of a run of `run --suspects`; confirm or reject suspected changes by it.",
        ),
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Judge counts and planned memory of programs only, no times.")
    ] = False,
    min_effect: MinEffect = None,
    budgets: Budgets = None,
    markdown: Markdown = None,
    verdict: Verdict = None,
    runtime: Runtime = None,
) -> None:
    """Other options are those of `jaxmeter run`.

    Exit code 0: passed; 1: a confirmed regression; 3: no reliable answer.
    """
    words = list_words(context)
    if not runs or len(runs) < 2 or any(word.startswith("-") for word in runs[:2]):
        end(lambda: pass_gate(make_shell(words), words))
    without_effect = "--runtime" if runtime is not None else next(iter(runs[2:]), None)
    if without_effect is not None:
        raise typer.BadParameter(f"two runs are judged without measuring; leave out {without_effect}")
    if is_launched("gate", ()):
        end(lambda: call_elsewhere("gate", words))
    from jaxmeter.cli.compare import judge_runs

    judge_runs(
        runs[0],
        runs[1],
        confirmed_by=confirmed_by,
        exact=exact,
        min_effect=min_effect or DEFAULT_EFFECT,
        budgets_file=None if budgets is None else Path(budgets),
        markdown_file=None if markdown is None else Path(markdown),
        verdict_file=None if verdict is None else Path(verdict),
    )
