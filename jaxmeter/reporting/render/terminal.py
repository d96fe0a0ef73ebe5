"""The view's first screen in a terminal: at most 100 columns and 40 lines, plain where the output is no terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from jaxmeter.reporting.render.console import print_lines
from jaxmeter.reporting.text import shorten
from jaxmeter.reporting.view import Page
from jaxmeter.reporting.view.page_model import AnswerLine, Item
from jaxmeter.reporting.view.tone import Tone

ANSWERS_AT_MOST = 6
ITEMS_AT_MOST = 4
LONGEST_WARNING = 180
TOLD_SECTIONS = ("published",)
"""Sections whose answer is told here, too."""

STYLES = {
    Tone.PLAIN: "",
    Tone.MUTED: "dim",
    Tone.GOOD: "green",
    Tone.WARN: "yellow",
    Tone.WORSE: "dark_orange",
    Tone.BAD: "red",
}


def show(page: Page, console: Console) -> None:
    """Prints the summary."""
    print_lines(_write_summary(page), console)


def _write_summary(page: Page) -> Iterator[Text]:
    yield Text(page.finding, "bold")
    yield Text(" ".join(page.summary))
    yield from _write_items("What changed", page.changed)
    yield from _write_items("Change points over many runs", page.change_points)
    if page.releases is not None:
        yield Text(f"{page.releases.question} ", "bold").append(page.releases.answer, "not bold")
    yield from _write_answers(page.answers)
    yield from _write_items("Needs attention", page.attention)
    yield from _write_items("Data warnings", page.warnings, cut=False)  # the reason stands last, behind a long path
    yield from (Text(section.answer) for section in page.sections if section.id in TOLD_SECTIONS)


def _write_answers(answers: Sequence[AnswerLine]) -> Iterator[Text]:
    for answer in answers[:ANSWERS_AT_MOST]:
        yield Text(f"  {answer.suite}  ", "bold").append(answer.text, f"not bold {STYLES[answer.tone]}")
    if len(answers) > ANSWERS_AT_MOST:
        yield Text(f"  + {len(answers) - ANSWERS_AT_MOST} more answers, in the report", "dim")


def _write_items(title: str, items: Sequence[Item], *, cut: bool = True) -> Iterator[Text]:
    if not items:
        return
    yield Text(f"{title} ({len(items)})", "bold")
    for item in items[:ITEMS_AT_MOST]:
        text = item.text if cut else shorten(item.text, LONGEST_WARNING)
        yield Text(f"  {item.label} ", STYLES[item.tone], no_wrap=cut).append(text, "default")
    if len(items) > ITEMS_AT_MOST:
        yield Text(f"  + {len(items) - ITEMS_AT_MOST} more, in the report")
