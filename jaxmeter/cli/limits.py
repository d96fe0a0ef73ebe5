"""`jaxmeter limits`: a check before anything is measured."""

from __future__ import annotations

from jaxmeter.cli.inputs import BudgetsFile, MinEffect, read_limits


def command(min_effect: MinEffect = "3%", budgets_file: BudgetsFile = None) -> None:
    """It measures and writes nothing."""
    read_limits(min_effect, budgets_file)
