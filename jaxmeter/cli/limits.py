"""Steps of other verbs: Check that these settings are valid, before measuring."""

from __future__ import annotations

from typing import Annotated

import typer

from jaxmeter.cli.complaints import give_up
from jaxmeter.cli.inputs import LONGEST_NAME, BudgetsFile, MinEffect, read_limits
from jaxmeter.harness.parent.arms import find_refusal
from jaxmeter.harness.record.wording import shorten
from jaxmeter.reporting.compare.budgets import NAMES
from jaxmeter.reporting.compare.conditions import FORBIDDING_VARIABLES
from jaxmeter.reporting.compare.verdicts import PROGRAM


def command(
    min_effect: MinEffect = "3%",
    budgets_file: BudgetsFile = None,
    metric: Annotated[str, typer.Option(metavar="NAME", help="Metric by which a bisection judges.")] = "time",
    old_env: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="Environment variable of an upgrade's old environment, NAME=VALUE; repeatable."
        ),
    ] = None,
    new_env: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="Environment variable of an upgrade's new environment, NAME=VALUE; repeatable."
        ),
    ] = None,
    try_env: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Environment variable that a bisection tries, NAME=VALUE; repeatable."),
    ] = None,
) -> None:
    """It measures nothing and writes no file."""
    read_limits(min_effect, budgets_file)
    if metric not in (known := (*NAMES, PROGRAM)):
        give_up(f"--metric '{shorten(metric, LONGEST_NAME)}' is none; metrics are {', '.join(known)}")
    for option, given in (("--old-env", old_env), ("--new-env", new_env), ("--try-env", try_env)):
        for word in given or ():
            name, _, value = word.partition("=")
            if name in FORBIDDING_VARIABLES:
                give_up(f"{option} {name}: numbers of two precisions are not compared; set it for both in your shell")
            if (problem := find_refusal(name, value)) is not None:
                give_up(f"{option} {shorten(name, LONGEST_NAME)}: {problem}")
