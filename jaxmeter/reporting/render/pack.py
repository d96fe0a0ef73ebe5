"""Data within a page: JSON, packed so that ten thousand results stay small and no text in it can end a script."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jaxmeter.reporting.view.page_model import CaseView, Page, SuiteView, Value, VariantResult

DIGITS = 6
"""Of a number: no processes tell more, and each takes room. The export has all of them."""

VALUES = ("time", "speedup", "first", "memory")

SHARED = ("variant", "where", "run", "status", "memory_of", "doubt")
"""Columns of few different words."""

LARGEST_CHUNK = 2**22
"""Characters of HTML that are unpacked at once."""

Pieces = Mapping[str, Sequence[tuple[str, str]]]
"""By the id that opens it: what it is made of, each piece with its kind."""

NUMBER_HERE = "\x7f"
"""Where a number was; a text that has this character itself has it among its numbers."""

CONTEXT = 4
"""Numbers that stand after the same characters, so many, are kept together: `cx="`, `µs [`."""

# A browser counts a character outside the basic plane as two, which the length of a context would notice.
_NUMBER = re.compile(rf"[0-9]+(?:\.[0-9]+)?|[{NUMBER_HERE}\U00010000-\U0010ffff]")

_WORD_ENDS = re.compile(r"(?<=>)|(?=<)|(?<=label=\")|(?=[;:])")
"""Between the words of which HTML is made: tags, and the phrases that titles and labels of figures share."""


FIRST_LETTER, FIRST_PAIR, PAIRS = 0x100, 0xD800, 0x800
"""Of the letters that stand for words, and of the halves of pairs, which stand for none."""


def pack(data: Any) -> str:
    """The data as JSON, gzip and base 85 without `<`; equal data give equal text."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # A lone surrogate, which only a file name can hold, has no UTF-8 form.
    packed = gzip.compress(text.encode("utf-8", "replace"), 9, mtime=0)
    return base64.b85encode(packed).decode().replace("<", ",")


def unpack(text: str) -> Any:
    """Return what a page has packed, as its script reads it: the index, or the HTML of each id of a chunk."""
    data = json.loads(gzip.decompress(base64.b85decode(text.replace(",", "<"))))
    if isinstance(data, dict) and "words" in data:
        kinds = _put_together(data["kinds"], data["words"], data["numbers"])
        left = {kind: iter(texts) for kind, texts in kinds.items()}
        return {name: "".join(next(left[kind]) for kind in own) for name, own in data["ids"].items()}
    return data


def _put_together(
    kinds: Mapping[str, Sequence[str]], words: Sequence[str], numbers: Mapping[str, str]
) -> dict[str, list[str]]:
    left = {context: iter(of_context.split(" ")) for context, of_context in numbers.items()}

    def put_numbers(text: str) -> str:
        return re.sub(NUMBER_HERE, lambda match: next(left[_context_of(text, match.start())]), text)

    return {
        kind: [put_numbers("".join(words[_decode(letter)] for letter in text)) for text in texts]
        for kind, texts in kinds.items()
    }


def _encode(number: int) -> str:
    """Return the letter that stands for a word: no control character, and no half of a pair of UTF-16."""
    return chr(number + FIRST_LETTER + (PAIRS if number + FIRST_LETTER >= FIRST_PAIR else 0))


def _decode(letter: str) -> int:
    return ord(letter) - FIRST_LETTER - (PAIRS if ord(letter) >= FIRST_PAIR else 0)


def _context_of(text: str, place: int) -> str:
    return text[max(0, place - CONTEXT) : place]


def make_chunks(pieces: Pieces) -> Iterator[dict[str, Any]]:
    """Yield the pieces in chunks of a size; within one, pieces of a kind are adjacent, which packs well."""
    ids: dict[str, list[str]] = {}
    kinds: dict[str, list[str]] = {}
    size = 0
    for name, own in pieces.items():
        ids[name] = []
        for kind, text in own:
            ids[name].append(kind)
            kinds.setdefault(kind, []).append(text)
            size += len(text)
        if size >= LARGEST_CHUNK:
            yield _make_chunk(ids, kinds)
            ids, kinds, size = {}, {}, 0
    if ids:
        yield _make_chunk(ids, kinds)


def _make_chunk(ids: Mapping[str, Any], kinds: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return the pieces with a letter for each word, and numbers by what stands before them: both pack better."""
    words: dict[str, int] = {}
    numbers: dict[str, list[str]] = {}
    packed: dict[str, list[str]] = {}
    for kind, texts in kinds.items():
        packed[kind] = []
        for text in texts:
            without = _NUMBER.sub(NUMBER_HERE, text)
            for match, number in zip(re.finditer(NUMBER_HERE, without), _NUMBER.findall(text), strict=True):
                numbers.setdefault(_context_of(without, match.start()), []).append(number)
            numbered = (words.setdefault(word, len(words)) for word in _WORD_ENDS.split(without))
            packed[kind].append("".join(map(_encode, numbered)))
    return {
        "ids": ids,
        "kinds": packed,
        "words": list(words),
        "numbers": {context: " ".join(of_context) for context, of_context in numbers.items()},
    }


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


def _list_rows(suites: Iterable[SuiteView]) -> Iterator[tuple[int, int, VariantResult]]:
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
