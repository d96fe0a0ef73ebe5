"""What a nightly run reports, for a log and for a pull request; next to each earlier run, what the gate says."""

from __future__ import annotations

from pathlib import Path

from jaxmeter.document.model import Document, Part, say
from jaxmeter.harness.record.wording import counted

from ..store.captures import describe_left_out
from ..store.stores import VERDICTS
from ..text import hide_home
from ..view.comparison import list_details
from ..view.verdict import write_heading
from .outcome import Concluded
from .stored import name_verdict


def describe_nightly(concluded: Concluded, page: Path, *, in_full: bool = False) -> Document:
    """Return what was measured, where it is, and what the gate says: `in_full` also where the run passes."""
    parts: list[Part] = []
    for one in concluded.results:
        if in_full or one.judgement.code:
            parts.append(say(write_heading(one.changes, one.judgement), title=one.name))
            parts += list_details(one.changes, one.judgement, in_full=in_full)
    return Document(concluded.verdict.heading, (say(*_describe_run(concluded, page)), *parts))


def _describe_run(concluded: Concluded, page: Path) -> tuple[str, str]:
    nightly, run, store = concluded.nightly, concluded.run, concluded.nightly.store.rstrip("/")
    where = f"pushed to {store}/{nightly.run}" if run.folder.mark.exists() else f"not pushed: {run.folder.path}"
    left_out = (describe_left_out(concluded.left_out),) if concluded.left_out else ()
    measured = f"{counted(len(run.manifest.cases), 'case')} on {nightly.machine}, {where}"
    verdict = f"{store}/{VERDICTS}/{name_verdict(nightly.run)}" if concluded.is_over else "none yet"
    return (
        hide_home("; ".join((measured, *left_out, *concluded.refused))),
        hide_home(f"page: {page}; verdict: {verdict}"),
    )
