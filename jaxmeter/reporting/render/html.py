"""The view as one HTML file: no network, one style sheet and one script, each allowed by its hash.

Equal view, equal bytes.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from importlib import resources
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from jaxmeter.reporting.draw import draw
from jaxmeter.reporting.draw.palette import make_style_sheet
from jaxmeter.reporting.render.pack import Pieces, make_chunks, make_index, pack
from jaxmeter.reporting.view import Page
from jaxmeter.reporting.view.figure_model import DEVICE_SIGNS, Figure
from jaxmeter.reporting.view.page_model import Card
from jaxmeter.reporting.view.sections.method import GLOSSARY
from jaxmeter.reporting.view.suites import HOW_TO_READ

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
