"""What a nightly run reports: lines for a log, and Markdown; next to each earlier run, what the gate writes."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from jaxmeter.reporting.nightly.outcome import Concluded
from jaxmeter.reporting.nightly.stored import name_verdict
from jaxmeter.reporting.render import compare
from jaxmeter.reporting.render.markdown import MARKER, MOST_CHARACTERS, escape
from jaxmeter.reporting.store.captures import describe_left_out
from jaxmeter.reporting.store.stores import VERDICTS
from jaxmeter.reporting.text import counted
from jaxmeter.reporting.view.verdict import write_heading

ROOM = 7 * MOST_CHARACTERS // 8
"""For the tables: the rest is for what stands above them."""


def write_lines(concluded: Concluded, page: Path) -> tuple[str, str, str]:
    """Return what was measured and where it is; the outcome; the page and the verdict."""
    nightly, run, store = concluded.nightly, concluded.run, concluded.nightly.store.rstrip("/")
    where = f"pushed to {store}/{nightly.run}" if run.folder.mark.exists() else f"not pushed: {run.folder.path}"
    left_out = (describe_left_out(concluded.left_out),) if concluded.left_out else ()
    verdict = f"{store}/{VERDICTS}/{name_verdict(nightly.run)}" if concluded.is_over else "none yet"
    return (
        "; ".join(
            (f"{counted(len(run.manifest.cases), 'case')} on {nightly.machine}, {where}", *left_out, *concluded.refused)
        ),
        concluded.verdict.heading,
        f"page: {page}; verdict: {verdict}",
    )


def show_failures(concluded: Concluded, console: Console) -> None:
    """Print what the gate prints, next to each earlier run that the nightly run does not pass with."""
    for result in concluded.results:
        if result.judgement.code:
            compare.show(result.changes, console, result.judgement)


def write_markdown(concluded: Concluded, page: Path) -> str:
    """Return what happened, then what the gate writes next to each earlier run."""
    measured, outcome, files = write_lines(concluded, page)
    parts = [f"{MARKER}\n## {escape(outcome)}", escape(measured), escape(files)]
    for result in concluded.results:
        parts.append(f"### {escape(result.name)}\n\n{escape(write_heading(result.changes, result.judgement))}")
        room = ROOM // len(concluded.results)
        parts.append(compare.write_details(result.changes, result.judgement, room).rstrip("\n"))
    return "\n\n".join(parts) + "\n"
