"""A document as Markdown for a pull request, below the size that a comment may have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from jaxmeter.document.model import Document, Item, Part, Table
from jaxmeter.harness.record.wording import shorten

MARKER = "<!-- jaxmeter report -->"
"""Lets a bot find its own comment and edit it."""

MOST_CHARACTERS = 60_000
"""A comment may have 65,536."""

LONGEST_CELL = 200

_BACKSLASHED = re.compile(r"[\\`*_{}\[\]#!~$]")
_REFERENCED = re.compile(r"\||:(?=//)|:(?=[\w+-]+:)|(?<=www)\.", re.IGNORECASE)
"""Cell borders, links and emoji: no backslash stops these."""

_MENTIONED = re.compile(r"[@#]|(?<=\bGH)-(?=\d)", re.IGNORECASE)
"""People, addresses and issues: GitHub looks for these once all else is decoded."""

WORD_JOINER = "\u2060"
"""Nobody sees it, and what stands after it is no name, address or number to GitHub."""


def write(document: Document) -> str:
    """The document as Markdown; tables share the room that the sentences leave."""
    blocks: list[str | Table] = [f"{MARKER}\n## {escape(document.title)}", *_list_blocks(document.parts)]
    tables = sum(isinstance(block, Table) for block in blocks)
    room = MOST_CHARACTERS - sum(len(block) + 2 for block in blocks if isinstance(block, str))
    texts = []
    for block in blocks:
        if isinstance(block, Table):
            text = write_table(block, room // tables)
            room, tables = room - len(text) - 2, tables - 1
        else:
            text = block
        texts.append(text)
    return "\n\n".join(filter(None, texts)) + "\n"


def escape(text: str) -> str:
    """The text as it reads: nothing in it is markup, a mention or a link. For use within a line, not at its start."""
    plain = _BACKSLASHED.sub(r"\\\g<0>", text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    joined = _MENTIONED.sub(rf"\g<0>{WORD_JOINER}", plain)
    return _REFERENCED.sub(lambda match: f"&#{ord(match[0])};", joined)


def _list_blocks(parts: Iterable[Part]) -> Iterator[str | Table]:
    """Yield paragraphs and tables; the content of a folded part unfolds below its title."""
    for part in parts:
        if part.title:
            title = escape(part.title)
            yield f"<details><summary>{title}</summary>" if part.is_folded else f"**{title}**"
        yield from _list_items(part.items)
        yield from part.tables
        yield from map(escape, part.notes)
        if part.is_folded:
            yield "</details>"


def _list_items(items: Iterable[Item]) -> Iterator[str]:
    """Yield a list if items have labels, else a paragraph for each."""
    if not any(item.label for item in items):
        yield from (escape(item.text) for item in items)
        return
    labels = (f"**{escape(item.label)}** " if item.label else "" for item in items)
    yield "\n".join(f"- {label}{escape(item.text)}" for label, item in zip(labels, items, strict=True))


def write_table(table: Table, room: int) -> str:
    """The table, with as many rows as fit into `room` characters."""
    shown = range(len(table.columns))
    headings = [", ".join(filter(None, (table.columns[i].title, table.columns[i].detail))) for i in shown]
    rule = "|" + "|".join("--:" if table.columns[index].numeric else "---" for index in shown) + "|"
    grouped = any(group.title for group in table.groups)
    lines = [_line([table.grouped_by, *headings]), "|---" + rule] if grouped else [_line(headings), rule]
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
