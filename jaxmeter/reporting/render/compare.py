"""What changed between two runs, for a terminal and for a pull request."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rich.console import Console
from rich.text import Text

from jaxmeter.reporting.compare.gate import Judgement
from jaxmeter.reporting.compare.verdicts import Changes
from jaxmeter.reporting.render import terminal
from jaxmeter.reporting.render.console import print_lines
from jaxmeter.reporting.render.markdown import MARKER, MOST_CHARACTERS, escape, write_table
from jaxmeter.reporting.view import reports
from jaxmeter.reporting.view.changes import (
    TONES,
    describe_exact,
    make_change_table,
    write_change,
    write_lone_notes,
    write_open_times,
)
from jaxmeter.reporting.view.reports import describe_reports, make_report_table, write_report
from jaxmeter.reporting.view.tone import Tone
from jaxmeter.reporting.view.verdict import describe_runtimes, find_confirming_command, list_others, write_heading

MOST_LINES = 24
"""Of single changes in a terminal; files hold all."""

IN_FILES = "in --markdown FILE and --verdict FILE"

MOST_OPEN, MOST_OPEN_IN_FILE = 5, 50
"""Of times without a verdict, in each sentence: in a terminal, and in a pull request; the verdict file has all."""

CONFIRM = "Confirm slower calls with both checkouts in lock-step"
OBSTACLE = "Obstacle to an answer"
LONE_NOTES = "Notes that only one run has:"


def show(changes: Changes, console: Console, judgement: Judgement | None = None) -> None:
    """Prints what changed."""
    print_lines(_list_lines(changes, judgement), console)


def _list_lines(changes: Changes, judgement: Judgement | None) -> Iterator[Text]:
    yield Text(write_heading(changes, judgement), "bold")
    yield Text(" → ".join(changes.sides), "dim")
    if changes.conditions.anything:
        yield Text(f"Not as before: {changes.conditions.describe(everything=True)}")
    if sentence := describe_exact(changes):
        yield Text(sentence)
    if sentence := describe_runtimes(changes, judgement):
        yield Text(sentence, "yellow")
    for words in () if judgement is None else judgement.obstacles:
        yield Text(f"{OBSTACLE}: {words}", "yellow")
    unconfirmed = () if judgement is None else judgement.unconfirmed
    for one in unconfirmed[:MOST_LINES]:
        yield Text("  not confirmed  ", "yellow").append(f"{one.verdict.value}: {write_change(one)}", "default")
    if len(unconfirmed) > MOST_LINES:
        yield Text(f"  + {len(unconfirmed) - MOST_LINES} more not confirmed, {IN_FILES}", "dim")
    if judgement is not None and (command := find_confirming_command(changes, judgement)):
        yield Text(f"  {CONFIRM}: {command}")
    regressions = () if judgement is None else judgement.regressions
    shown = [*regressions, *list_others(changes, judgement)]
    for index, one in enumerate(shown[:MOST_LINES]):
        is_beyond = index < len(regressions) and not one.verdict.is_suspected
        style = terminal.STYLES[Tone.BAD if is_beyond else TONES.get(one.verdict, Tone.PLAIN)]
        end = "; beyond its budget" if is_beyond else ""
        yield Text(f"  {one.verdict.value}  ", style).append(write_change(one) + end, "default")
    if len(shown) > MOST_LINES:
        yield Text(f"  + {len(shown) - MOST_LINES} more, {IN_FILES}", "dim")
    said = () if judgement is None else (*judgement.unconfirmed, *judgement.regressions)
    yield from (Text(sentence, "dim") for sentence in write_open_times(changes, MOST_OPEN, said))
    if changes.reports:
        yield Text(describe_reports(changes.reports), "bold")
    for report in changes.reports:
        style = terminal.STYLES[reports.TONES.get(report.here, Tone.PLAIN)]
        yield Text(f"  {report.here.value}  ", style).append(write_report(report), "default")
    notes = write_lone_notes(changes)
    if notes:
        yield Text(LONE_NOTES, "bold")
    yield from (Text(f"  {note}") for note in notes)


def write_markdown(changes: Changes, judgement: Judgement | None) -> str:
    """For a pull request; a hidden marker lets a bot find its own comment."""
    details = write_details(changes, judgement, MOST_CHARACTERS)
    return f"{MARKER}\n## {escape(write_heading(changes, judgement))}\n\n{details}"


def write_details(changes: Changes, judgement: Judgement | None, room: int) -> str:
    """The same without its heading.

    Args:
      room: Characters that it may have.
    """
    parts = [
        escape(" → ".join(changes.sides)),
        *(
            [escape(f"Not as before: {changes.conditions.describe(everything=True)}")]
            if changes.conditions.anything
            else []
        ),
        *([escape(sentence)] if (sentence := describe_exact(changes)) else []),
        *([escape(sentence)] if (sentence := describe_runtimes(changes, judgement)) else []),
        *(escape(f"{OBSTACLE}: {words}") for words in (() if judgement is None else judgement.obstacles)),
    ]
    regressions, unconfirmed = ((), ()) if judgement is None else (judgement.regressions, judgement.unconfirmed)
    is_explained = False
    for title, found, share in (
        ("Regressions", regressions, 4),
        ("Not confirmed", unconfirmed, 8),
        ("What changed", list_others(changes, judgement), 2),
    ):
        if found:
            table = make_change_table(found)
            parts += [f"**{title}**", write_table(replace(table, caption="") if is_explained else table, room // share)]
            is_explained = True
    parts += map(escape, write_open_times(changes, MOST_OPEN_IN_FILE, (*regressions, *unconfirmed)))
    if judgement is not None and (command := find_confirming_command(changes, judgement)):
        parts.append(f"{CONFIRM}: {escape(command)}")
    if changes.reports:
        parts += [
            f"**{describe_reports(changes.reports)}**",
            write_table(make_report_table(changes.reports), room // 4),
        ]
    if notes := write_lone_notes(changes):
        parts += [f"**{LONE_NOTES}**", "\n".join(f"- {escape(note)}" for note in notes)]
    return "\n\n".join(parts) + "\n"
