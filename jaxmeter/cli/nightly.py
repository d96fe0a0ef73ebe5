"""Schedule: Measure, push, compare with earlier runs, report."""

from __future__ import annotations

from typing import Annotated

import typer

from jaxmeter.cli.launching import (
    FORWARDS,
    Budgets,
    Markdown,
    MinEffect,
    Runtime,
    Verdict,
    end,
    list_words,
    make_shell,
)
from jaxmeter.launch.nightly import run_nightly

SETTINGS = FORWARDS


def command(
    context: typer.Context,
    store: Annotated[
        str | None, typer.Option(metavar="URL", help="s3://bucket/folder, gs://bucket/folder or file:///folder.")
    ] = None,
    machine: Annotated[str | None, typer.Option(metavar="NAME", help="Name of this machine in its runs.")] = None,
    out: Annotated[str | None, typer.Option(metavar="DIR", help="Folder of runs on this machine.")] = None,
    baseline: Annotated[
        str | None, typer.Option(metavar="RUN", help="Pinned run; default: the run accepted last.")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="STEP",
            help="Begin a nightly run in progress at begin, measure, suspects, confirm or conclude.",
        ),
    ] = None,
    with_captures: Annotated[bool, typer.Option("--with-captures", help="Also push profiler captures.")] = False,
    min_effect: MinEffect = None,
    budgets: Budgets = None,
    page: Annotated[str | None, typer.Option(metavar="FILE", help="HTML file to write.")] = None,
    markdown: Markdown = None,
    verdict: Verdict = None,
    runtime: Runtime = None,
) -> None:
    """Other options are those of `jaxmeter run`. An interrupted nightly run continues when it is started again.

    Exit code 1: a confirmed regression; 3: no answer.
    """
    words = list_words(context)
    end(lambda: run_nightly(make_shell(words), words))
