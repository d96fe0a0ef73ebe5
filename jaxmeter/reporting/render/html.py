"""The view as one HTML file: no network, one style sheet and one script by hash, and data in it that stays small."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from jaxmeter.reporting.draw import draw
from jaxmeter.reporting.draw.palette import make_style_sheet
from jaxmeter.reporting.view.page_model import (
    DEVICE_SIGNS,
    Card,
    CaseView,
    Figure,
    Page,
    SuiteView,
    Value,
    VariantResult,
)
from jaxmeter.reporting.view.sections.method import GLOSSARY
from jaxmeter.reporting.view.suites import HOW_TO_READ

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


ATTENTION_AT_MOST = 5
"""Items of a list on the first screen; the rest unfolds below them."""

_MEANINGS = dict(GLOSSARY)
_WORDS = re.compile(rf"\b({'|'.join(map(re.escape, _MEANINGS))})s?\b", re.IGNORECASE)

_WITH_INTERVAL = re.compile(r"(\d[\d.,\u202f]*(?:[^\W\d_]|[/×%µ])*)(?= \[)")
"""A number with its unit, before the bounds of its interval."""

_CODE = re.compile(r"`([^`]+)`")

_SPACES = re.compile(r"\s*([{};])\s*|(?<=[:,])\s+")
"""Of a style sheet, where they mean nothing; ours has none within quotes."""

MORE_ANSWERS = "more"
"""The id of the answers that unfold below the first screen."""

UNQUOTED = "/=,:._~!()*-[]"
"""Characters that stay as they are in a fragment, in addition to letters and digits."""


def render(page: Page) -> str:
    """The page as HTML text."""
    css, script = _SPACES.sub(r"\1", _read("report.css")) + make_style_sheet(), _read("report.js")
    environment = _open_templates()
    drawings: dict[str, list[tuple[str, str]]] = {}

    def keep_drawing(figure: Figure, width: int) -> str:
        """Keep a drawing for narrow screens among what is packed; its id."""
        name = f"drawing={len(drawings)}"
        drawings[name] = [("drawing", str(draw(figure, width)))]
        return name

    environment.filters["keep_drawing"] = keep_drawing

    def list_packed() -> Iterator[tuple[str, Markup]]:
        """Called when all else is written, and the drawings are kept."""
        pieces = _render_pieces(environment, page)
        chunks = list(make_chunks({**drawings, **pieces}))
        # No text that is packed contains a `<`, the only character that could end its script.
        yield "index", Markup(pack(make_index(page, chunks)))
        for number, chunk in enumerate(chunks):
            yield f"chunk-{number}", Markup(pack(chunk))

    return environment.get_template("report.html.j2").render(
        page=page,
        # Our own files: nothing recorded enters them.
        css=Markup(css),
        script=Markup(script),
        policy=policy(css, script),
        packed=list_packed,
        at_most=ATTENTION_AT_MOST,
        how_to_read=HOW_TO_READ,
    )


def define(text: str) -> Markup:
    """The text, escaped, with each word of the glossary explained where it first stands."""
    explained: set[str] = set()

    def explain(match: re.Match[str]) -> str:
        word = match[1].lower()
        if word in explained:
            return match[0]
        explained.add(word)
        return f'<dfn title="{escape(_MEANINGS[word])}">{match[0]}</dfn>'

    return Markup(_WORDS.sub(explain, escape(text)))


def emphasise(text: str) -> Markup:
    """Return a text, escaped, with each number that has an interval in bold."""
    return Markup(_WITH_INTERVAL.sub(r"<b>\1</b>", str(escape(text))))


def mark_code(text: str) -> Markup:
    """Return a text, escaped, with what stands in backticks as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))


def policy(css: str, script: str) -> str:
    """Nothing may be loaded, and nothing run or applied but this script and style sheet."""
    return (
        f"default-src 'none'; script-src 'sha256-{_hash(script)}'; style-src 'sha256-{_hash(css)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _render_pieces(environment: Environment, page: Page) -> Pieces:
    """What is unpacked when it is opened: of a suite and a section what the page itself leaves out, and each case."""
    # Macros, as a template knows them: what they return is escaped.
    macros: Any = environment.get_template("pieces.html.j2").module
    pieces = {
        suite.id: [*_render_figures(macros, suite.figures), ("more", str(macros.folded(suite.parts)))]
        for suite in page.suites
    }
    pieces |= {section.id: [("more", str(macros.more(section.parts)))] for section in page.sections if section.packed}
    if page.overview.more:
        answers = macros.answers(page.overview.more, len(page.overview.devices) > 1)
        pieces[MORE_ANSWERS] = [("answers", str(answers))]
    for suite in page.suites:
        for case in suite.cases:
            sections = ((section.id, str(macros.section(section))) for section in case.sections)
            head = ("head", str(macros.head(case, suite)))
            pieces[case.id] = [
                head,
                *_render_figures(macros, case.figures),
                *sections,
                ("tail", str(macros.tail(case))),
            ]
    return pieces


def _render_figures(macros: Any, cards: Sequence[Card]) -> list[tuple[str, str]]:
    """Return each card as a piece; cards of an id, and those of an id for each workload or param, are of one kind."""
    if not cards:
        return []
    several = len({phrase.hue for card in cards for phrase in card.phrases if phrase.hue is not None}) > 1
    drawn = (("curves" if "-" in card.id else card.id, str(macros.drawn_card(card, several))) for card in cards)
    return [("frame", '<div class="half">'), *drawn, ("frame", "</div>")]


def _open_templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("jaxmeter.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "code": mark_code,
        "define": define,
        "draw": draw,
        "emphasise": emphasise,
        "fragment": lambda target: quote(target, safe=UNQUOTED),
        "sign": lambda hue: DEVICE_SIGNS.get(hue, ""),
    }
    return environment


def _read(name: str) -> str:
    """A file of ours without indentation and comments; with LF, since a policy's hash is of what a parser sees."""
    text = resources.files("jaxmeter.reporting").joinpath(f"templates/{name}").read_text("utf-8")
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
