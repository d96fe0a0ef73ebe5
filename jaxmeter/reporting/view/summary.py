"""The page's first screen as a document: short for a terminal, with the numbers in a fold for a pull request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jaxmeter.document.model import Document, Item, Part, Table, limit, say
from jaxmeter.harness.record.wording import shorten

from .page_model import AnswerLine, Page, SuiteView

MOST_ITEMS, MOST_ANSWERS = 4, 6
MOST_ITEMS_IN_FULL, MOST_ANSWERS_IN_FULL = 10, 24
"""Of each list: in a terminal, of which it fills 40 lines, and in a pull request."""

LONGEST_ITEM, LONGEST_WARNING = 85, 180
"""Characters in a terminal: a line; a warning's reason comes last, after a long path."""

IN_THE_REPORT = "in the report"
TOLD_SECTIONS = ("published",)
"""Sections whose answer is told in a terminal, too."""

FOLDED_SECTIONS = ("published", "problems")


def summarise(page: Page, *, in_full: bool = False) -> Document:
    """Return the summary of a page, `in_full` with its matrix, its results and some of its sections."""
    most_items, most_answers = (MOST_ITEMS_IN_FULL, MOST_ANSWERS_IN_FULL) if in_full else (MOST_ITEMS, MOST_ANSWERS)

    def gather(title: str, items: Sequence[Item], longest: int = LONGEST_ITEM) -> Part:
        shown = items if in_full else [replace(item, text=shorten(item.text, longest)) for item in items]
        return Part(f"{title} ({len(items)})", items=limit(shown, most_items, IN_THE_REPORT)) if items else Part()

    parts = [
        say(page.subtitle if in_full else "", " ".join(page.summary)),
        gather("What changed", page.changed),
        gather("Change points over many runs", page.change_points),
        *_describe_releases(page, in_full=in_full),
        Part(
            items=limit(
                [_write_answer(answer, in_full=in_full) for answer in page.answers], most_answers, IN_THE_REPORT
            )
        ),
        gather("Needs attention", page.attention),
        gather("Data warnings", page.warnings, LONGEST_WARNING),
        *(_list_details(page) if in_full else ()),
        *(() if in_full else (say(section.answer) for section in page.sections if section.id in TOLD_SECTIONS)),
    ]
    return Document(page.finding, tuple(part for part in parts if not part.is_empty))


def _describe_releases(page: Page, *, in_full: bool) -> Sequence[Part]:
    if page.releases is None:
        return ()
    tables = (page.releases.table,) if in_full else ()
    return (replace(say(page.releases.answer, title=page.releases.question), tables=tables),)


def _write_answer(answer: AnswerLine, *, in_full: bool) -> Item:
    of = f" ({answer.of})" if in_full and answer.of else ""
    return Item(answer.text + of, answer.suite, tone=answer.tone)


def _list_details(page: Page) -> Sequence[Part]:
    folded = (
        replace(
            say(section.answer, title=section.question),
            tables=tuple(table for part in section.parts for table in part.tables),
            is_folded=True,
        )
        for section in page.sections
        if section.id in FOLDED_SECTIONS
    )
    return (
        Part(tables=(page.matrix,) if page.matrix else (), notes=tuple(filter(None, (page.matrix_note,)))),
        Part("Results", (_join(page.suites),), is_folded=True) if page.suites else Part(),
        *folded,
    )


def _join(suites: Sequence[SuiteView]) -> Table:
    """The tables of all suites as one: they have the same columns."""
    return replace(suites[0].table, groups=tuple(group for suite in suites for group in suite.table.groups))
