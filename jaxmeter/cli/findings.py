"""What `compare` and `gate` write, and warn of."""

from __future__ import annotations

from pathlib import Path

from jaxmeter.cli.complaints import complain, write_file
from jaxmeter.cli.inputs import LONGEST_NAME
from jaxmeter.reporting.compare.budgets import Budgets
from jaxmeter.reporting.compare.findings import Changes
from jaxmeter.reporting.compare.gate import Judgement
from jaxmeter.reporting.render import compare as render
from jaxmeter.reporting.text import shorten
from jaxmeter.reporting.view.verdict import encode_verdict


def warn_of_unused(budgets: Budgets, changes: Changes) -> None:
    """Warn of budgets that match no case."""
    for pattern in budgets.find_unused({f"{one.suite}/{one.case}" for one in changes.found} | set(changes.names)):
        complain(f'the budget of "{shorten(pattern, LONGEST_NAME)}" matches no case', "warning")


def write_findings(
    changes: Changes, judgement: Judgement | None, markdown_file: Path | None, verdict_file: Path | None
) -> None:
    """Write findings to the files that were asked for."""
    if markdown_file is not None:
        write_file(markdown_file, render.write_markdown(changes, judgement).encode("utf-8", "replace"))
    if verdict_file is not None:
        write_file(verdict_file, encode_verdict(changes, judgement))
