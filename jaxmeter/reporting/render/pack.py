"""Data within a page: JSON, packed so that ten thousand results stay small and no text in it can end a script."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jaxmeter.reporting.view.page_model import CaseView, Page, Result, SuiteView, Value

DIGITS = 6
"""Of a number: no processes tell more, and each takes room. The export has all of them."""

VALUES = ("time", "speedup", "first", "memory")

SHARED = ("variant", "where", "run", "status", "memory_of", "doubt")
"""Columns of few different words."""

LARGEST_CHUNK = 2**21
"""Characters of HTML that are unpacked at once: a tenth of a second on a slow phone."""

Pieces = Mapping[str, Sequence[tuple[str, str]]]
"""By the id that opens it: what it is made of, each piece with its kind."""


def pack(data: Any) -> str:
    """The data as JSON, gzip and base64; equal data give equal text."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # A lone surrogate, which only a file name can hold, has no UTF-8 form.
    return base64.b64encode(gzip.compress(text.encode("utf-8", "replace"), 9, mtime=0)).decode()


def make_chunks(pieces: Pieces) -> Iterator[dict[str, Any]]:
    """The pieces in chunks of a size; within one, pieces of a kind stand together, which packs well."""
    ids: dict[str, list[tuple[str, int]]] = {}
    kinds: dict[str, list[str]] = {}
    size = 0
    for name, own in pieces.items():
        ids[name] = []
        for kind, text in own:
            alike = kinds.setdefault(kind, [])
            ids[name].append((kind, len(alike)))
            alike.append(text)
            size += len(text)
        if size >= LARGEST_CHUNK:
            yield {"ids": ids, "kinds": kinds}
            ids, kinds, size = {}, {}, 0
    if ids:
        yield {"ids": ids, "kinds": kinds}


def make_index(page: Page, chunks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Every result by columns, where what is alike stands together, and the chunk that holds what an id opens."""
    rows = list(_list_rows(page.suites))
    columns: dict[str, list[Any]] = {
        "suite": [suite for suite, *_ in rows],
        "case": [case for _, case, *_ in rows],
        **{name: [getattr(result, name) for *_, result in rows] for name in SHARED},
    }
    for name in VALUES:
        values: list[Value] = [getattr(result, name) for *_, result in rows]
        columns[name] = [value.text for value in values]
        for bound in ("value", "low", "high"):
            columns[f"{name}_{bound}"] = [_round(getattr(value, bound)) for value in values]
    suites = [{"id": suite.id, "name": suite.name} for suite in page.suites]
    cases = [{"id": case.id, "name": case.name} for suite in page.suites for case in suite.cases]
    return {
        "suites": suites,
        "cases": cases,
        "columns": {name: _share(name, column) for name, column in columns.items()},
        # What is not named here is in the first.
        "chunks": {name: number for number, chunk in enumerate(chunks[1:], 1) for name in chunk["ids"]},
    }


def _list_rows(suites: Iterable[SuiteView]) -> Iterator[tuple[int, int, Result]]:
    """A row's suite and case by their number, and its result."""
    cases: Iterator[tuple[int, CaseView]] = (
        (number, case) for number, suite in enumerate(suites) for case in suite.cases
    )
    for index, (number, case) in enumerate(cases):
        for result in case.results:
            yield number, index, result


def _share(name: str, column: list[Any]) -> Mapping[str, Any] | list[Any]:
    """A column of few different words as numbers into a list of them."""
    if name not in SHARED:
        return column
    words = list(dict.fromkeys(column))
    numbers = {word: index for index, word in enumerate(words)}
    return {"words": words, "rows": [numbers[word] for word in column]}


def _round(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")
