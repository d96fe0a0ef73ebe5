"""What two runs say, as a document: the same for a terminal, a pull request and a nightly run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jaxmeter.document.model import Document, Item, Part, Tone, say

from ..compare.gate import Judgement
from ..compare.verdicts import Change, Changes
from .changes import describe_exact, make_change_table, write_lone_notes, write_open_times
from .reports import describe_reports, make_report_table
from .verdict import describe_runtimes, find_confirming_command, list_others, write_heading

MOST_ROWS = 24
"""Of changes in a terminal; files have all."""

MOST_OPEN, MOST_OPEN_IN_FULL = 5, 50
"""Of times without a verdict, in each sentence: in a terminal, and in a pull request; the verdict file has all."""

IN_FILES = "in --markdown FILE and --verdict FILE"
CONFIRM = "Confirm slower calls with both checkouts in lock-step"
BEYOND = "beyond its budget"
OBSTACLE = "Obstacle to an answer"
LONE_NOTES = "Notes that only one run has:"


def describe_comparison(changes: Changes, judgement: Judgement | None, *, in_full: bool = False) -> Document:
    """Return what changed, and what is judged of it: `in_full` with all rows, and with what their columns mean."""
    return Document(write_heading(changes, judgement), list_details(changes, judgement, in_full=in_full))


def list_details(changes: Changes, judgement: Judgement | None, *, in_full: bool = False) -> tuple[Part, ...]:
    """Return the same without its heading."""
    regressions = () if judgement is None else judgement.regressions
    unconfirmed = () if judgement is None else judgement.unconfirmed
    command = "" if judgement is None else find_confirming_command(changes, judgement)
    parts = [
        _describe_runs(changes, judgement),
        _show("Regressions", list(map(_mark_beyond, regressions)), in_full=in_full),
        _show("Not confirmed", unconfirmed, in_full=in_full),
        say(f"{CONFIRM}: {command}" if command else ""),
        _show("What changed", list_others(changes, judgement), in_full=in_full),
        say(*write_open_times(changes, MOST_OPEN_IN_FULL if in_full else MOST_OPEN, (*regressions, *unconfirmed))),
    ]
    if changes.reports:
        parts.append(Part(describe_reports(changes.reports), (make_report_table(changes.reports),)))
    if notes := write_lone_notes(changes):
        parts.append(say(*notes, title=LONE_NOTES))
    return tuple(part for part in parts if not part.is_empty)


def _describe_runs(changes: Changes, judgement: Judgement | None) -> Part:
    conditions = changes.conditions
    before = f"Not as before: {conditions.describe(everything=True)}" if conditions.anything else ""
    doubts = [describe_runtimes(changes, judgement)]
    doubts += [f"{OBSTACLE}: {words}" for words in (() if judgement is None else judgement.obstacles)]
    sides = Item(" → ".join(changes.sides), tone=Tone.MUTED)
    return Part(items=(sides, *say(before, describe_exact(changes)).items, *say(*doubts, tone=Tone.WARN).items))


def _mark_beyond(regression: Change) -> Change:
    """Return a regression that says that it is beyond its budget, unless it is only suspected."""
    reason = "; ".join(filter(None, (regression.reason, BEYOND)))
    return regression if regression.verdict.is_suspected else replace(regression, reason=reason)


def _show(title: str, found: Sequence[Change], *, in_full: bool) -> Part:
    """Return a table of changes, without its caption in a terminal."""
    if not found:
        return Part()
    shown = found if in_full else found[:MOST_ROWS]
    table = make_change_table(shown)
    left = len(found) - len(shown)
    more = (f"+ {left} more, {IN_FILES}",) if left else ()
    return Part(f"{title} ({len(found)})", (table if in_full else replace(table, caption=""),), more)
