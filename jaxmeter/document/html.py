"""A document as HTML for a notebook. The page of a report has templates of its own."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from jaxmeter.document.model import Cell, Document, Table
from jaxmeter.harness.record.wording import visible


def write(document: Document) -> str:
    """The document as a fragment: nothing in it is markup but ours."""
    return "".join(_list_elements(document))


def _list_elements(document: Document) -> Iterator[str]:
    if document.title:
        yield f"<p><b>{_clean(document.title)}</b></p>"
    for part in document.parts:
        if part.title:
            yield f"<p><b>{_clean(part.title)}</b></p>"
        yield from map(_write_table, part.tables)
        lines = [*(f"{item.label} {item.text}".strip() for item in part.items), *part.notes]
        if lines:
            yield f"<p>{'<br>'.join(map(_clean, lines))}</p>"


def _write_table(table: Table) -> str:
    head = "".join(f"<th>{_clean(column.title)}</th>" for column in table.columns)
    body = "".join(
        f"<tr><th>{_write_cell(first)}</th>{''.join(f'<td>{_write_cell(cell)}</td>' for cell in cells)}</tr>"
        for first, *cells in (row.cells for row in table.rows)
    )
    caption = f"<caption>{_clean(table.caption)}</caption>" if table.caption else ""
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _write_cell(cell: Cell) -> str:
    return " ".join(_clean(text) for text in (cell.text, cell.detail) if text)


def _clean(text: str) -> str:
    return escape(visible(text))
