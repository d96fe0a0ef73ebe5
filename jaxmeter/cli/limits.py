"""`jaxmeter limits`: a check before anything is measured."""

from __future__ import annotations

from typing import Annotated

import typer

from jaxmeter.cli.complaints import give_up
from jaxmeter.cli.inputs import LONGEST_NAME, BudgetsFile, MinEffect, read_limits
from jaxmeter.reporting.compare.budgets import NAMES
from jaxmeter.reporting.compare.findings import PROGRAM
from jaxmeter.reporting.text import shorten


def command(
    min_effect: MinEffect = "3%",
    budgets_file: BudgetsFile = None,
    metric: Annotated[str, typer.Option(metavar="NAME", help="What a bisection judges by.")] = "time",
) -> None:
    """It measures and writes nothing."""
    read_limits(min_effect, budgets_file)
    if metric not in (known := (*NAMES, PROGRAM)):
        give_up(f"--metric '{shorten(metric, LONGEST_NAME)}' is none; metrics are {', '.join(known)}")
