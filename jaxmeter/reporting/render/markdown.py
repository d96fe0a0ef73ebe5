"""The view as Markdown for a pull request: what stands on the page's first screen, and the numbers in a fold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from jaxmeter.reporting.text import shorten
from jaxmeter.reporting.view import Page
from jaxmeter.reporting.view.page_model import AnswerLine, Item, ReleasesView, SuiteView, Table

MARKER = "<!-- jaxmeter report -->"
"""Lets a bot find its own comment and edit it."""

MOST_CHARACTERS = 60_000
"""A comment may have 65,536."""

ITEMS_AT_MOST = 10
ANSWERS_AT_MOST = 24
LONGEST_CELL = 200
FOLDED_SECTIONS = ("published", "problems")

_BACKSLASHED = re.compile(r"[\\`*_{}\[\]#!~$]")
_REFERENCED = re.compile(r"\||:(?=//)|:(?=[\w+-]+:)|(?<=www)\.", re.IGNORECASE)
"""Cell borders, links and emoji: no backslash stops these."""

_MENTIONED = re.compile(r"[@#]|(?<=\bGH)-(?=\d)", re.IGNORECASE)
"""People, addresses and issues: GitHub looks for these once all else is decoded."""

WORD_JOINER = "\u2060"
"""Nobody sees it, and what stands after it is no name, address or number to GitHub."""


def render(page: Page) -> str:
    """The page as Markdown, below the size that a comment may have."""
    parts = [
        f"{MARKER}\n## {escape(page.finding)}",
        escape(page.subtitle),
        escape(" ".join(page.summary)),
        *_items("What changed", page.changed),
        *_items("Change points over many runs", page.change_points),
        *([] if page.releases is None else _releases(page.releases)),
        *_answers(page.answers),
        *_items("Needs attention", page.attention),
        *_items("Data warnings", page.warnings),
        *([write_table(page.matrix, MOST_CHARACTERS // 4)] if page.matrix else []),
        escape(page.matrix_note),
    ]
    folds = [
        *([("Results", "", [_join(page.suites)])] if page.suites else []),
        *(
            (section.question, section.answer, [table for part in section.parts for table in part.tables])
            for section in page.sections
            if section.id in FOLDED_SECTIONS
        ),
    ]
    for title, answer, tables in folds:
        room = (MOST_CHARACTERS - sum(map(len, parts))) // 2
        lines = [
            f"<details><summary>{escape(title)}</summary>",
            escape(answer),
            *(write_table(one, room) for one in tables),
        ]
        parts.append("\n\n".join([*filter(None, lines), "</details>"]))
    return "\n\n".join(parts) + "\n"


def _join(suites: Sequence[SuiteView]) -> Table:
    """The tables of all suites as one: they have the same columns."""
    return replace(suites[0].table, groups=tuple(group for suite in suites for group in suite.table.groups))


def escape(text: str) -> str:
    """The text as it reads: nothing in it is markup, a mention or a link. For use within a line, not at its start."""
    plain = _BACKSLASHED.sub(r"\\\g<0>", text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    joined = _MENTIONED.sub(rf"\g<0>{WORD_JOINER}", plain)
    return _REFERENCED.sub(lambda found: f"&#{ord(found[0])};", joined)


def _releases(one: ReleasesView) -> Iterable[str]:
    return f"**{escape(one.question)}** {escape(one.answer)}", write_table(one.table, MOST_CHARACTERS // 4)


def _answers(answers: Sequence[AnswerLine]) -> Iterable[str]:
    if not answers:
        return ()
    lines = [_answer(one) for one in answers[:ANSWERS_AT_MOST]]
    left = len(answers) - ANSWERS_AT_MOST
    return ("\n".join([*lines, *([f"- + {left} more, in the report"] if left > 0 else [])]),)


def _answer(one: AnswerLine) -> str:
    of = f" ({escape(one.of)})" if one.of else ""
    return f"- **{escape(one.suite)}** {escape(one.text)}{of}"


def _items(title: str, items: Sequence[Item]) -> Iterable[str]:
    if not items:
        return ()
    lines = [f"- **{escape(item.label)}** {escape(item.text)}" for item in items[:ITEMS_AT_MOST]]
    left = len(items) - ITEMS_AT_MOST
    return (f"**{escape(title)} ({len(items)})**", "\n".join([*lines, *([f"- + {left} more"] if left > 0 else [])]))


def write_table(table: Table, room: int) -> str:
    """The table, with as many rows as fit into `room` characters."""
    shown = range(len(table.columns))
    headings = [", ".join(filter(None, (table.columns[i].title, table.columns[i].detail))) for i in shown]
    rule = "|" + "|".join("--:" if table.columns[index].numeric else "---" for index in shown) + "|"
    grouped = any(group.title for group in table.groups)
    lines = [_line(["Case", *headings]), "|---" + rule] if grouped else [_line(headings), rule]
    lines = [escape(table.caption), "", *lines] if table.caption else lines
    size, left = sum(map(len, lines)), 0
    for group in table.groups:
        for row in group.rows:
            cells = [row.cells[index] for index in shown]
            texts = [" · ".join(filter(None, (cell.text, cell.detail))) for cell in cells]
            line = _line([group.title, *texts] if grouped else texts)
            size += len(line) + 1
            if size > room:
                left += 1
            else:
                lines.append(line)
    more = f"\n\n{left} rows left out." if left else ""
    return "\n".join(lines) + more


def _line(texts: Iterable[str]) -> str:
    return "| " + " | ".join(escape(shorten(text, LONGEST_CELL)) for text in texts) + " |"
