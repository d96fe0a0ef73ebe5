"""`jaxmeter bisect`: the releases that changed a case."""

from __future__ import annotations

from typing import Annotated

import typer

from jaxmeter.cli.bisecting import bisect_releases
from jaxmeter.cli.launching import FORWARDS, end, list_words, make_shell
from jaxmeter.launch.bisect import PROCESSES

SETTINGS = FORWARDS

Release = Annotated[str | None, typer.Option(metavar="RELEASE", help="One package with its version: jax==0.12.0.")]


def command(
    context: typer.Context,
    good: Release = None,
    bad: Release = None,
    case: Annotated[str | None, typer.Option(metavar="GLOB", help="The case that changed, as of --select.")] = None,
    variant: Annotated[str | None, typer.Option(metavar="NAME", help="Its only variant that counts.")] = None,
    metric: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="time (default), program, or a metric of budgets, such as peak_memory."),
    ] = None,
    shell_command: Annotated[
        str | None,
        typer.Option("--command", metavar="COMMAND", help="A shell command that ends with 0 in a good release."),
    ] = None,
    processes: Annotated[
        str | None, typer.Option(metavar="N", help=f"Processes of each step of a walk; default: {PROCESSES}.")
    ] = None,
    resume: Annotated[str | None, typer.Option(metavar="NAME", help="Continue an interrupted walk.")] = None,
    python: Annotated[str | None, typer.Option(metavar="PATH", help="Interpreter of all environments.")] = None,
    try_env: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A variable that may undo the first slower step; repeatable."),
    ] = None,
) -> None:
    """Other options are those of `jaxmeter run`. Exit code 0: a change was found; 3: none is confirmed."""
    words = list_words(context)
    end(lambda: bisect_releases(make_shell(words), words))
