"""The verdict of a nightly run for a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jaxmeter.reporting.nights.judged import Judged
from jaxmeter.reporting.nights.outcome_text import name_beside
from jaxmeter.reporting.render.compare import write_details
from jaxmeter.reporting.render.markdown import MARKER, MOST_CHARACTERS, escape
from jaxmeter.reporting.view.verdict import write_heading

ROOM = 7 * MOST_CHARACTERS // 8
"""For the tables: the rest is for what stands above them."""


def write_night_markdown(outcome: str, lines: Iterable[str], judged: Sequence[Judged]) -> str:
    """Return what happened, then what was found next to each earlier run."""
    parts = [f"{MARKER}\n## {escape(outcome)}", *map(escape, lines)]
    for one in judged:
        parts.append(f"### {escape(name_beside(one))}\n\n{escape(write_heading(one.changes, one.judgement))}")
        parts.append(write_details(one.changes, one.judgement, ROOM // len(judged)).rstrip("\n"))
    return "\n\n".join(parts) + "\n"
