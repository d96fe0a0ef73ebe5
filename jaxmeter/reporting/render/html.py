"""The view as one HTML file: no network, one style sheet and one script, each allowed by its hash.

Equal view, equal bytes.
"""

from __future__ import annotations

import base64
import hashlib
import re
from importlib import resources
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from jaxmeter.reporting.draw import draw
from jaxmeter.reporting.draw.palette import make_style_sheet
from jaxmeter.reporting.render.pack import Pieces, make_chunks, make_index, pack
from jaxmeter.reporting.view import Page
from jaxmeter.reporting.view.sections.method import GLOSSARY

ATTENTION_AT_MOST = 5
TOLD_AT_MOST = 8
"""Items and answers of the first screen; the rest unfolds below them."""

_MEANINGS = dict(GLOSSARY)
_WORDS = re.compile(rf"\b({'|'.join(map(re.escape, _MEANINGS))})s?\b", re.IGNORECASE)

_WITH_INTERVAL = re.compile(r"(\d[\d.,\u202f]*(?:[^\W\d_]|[/×%µ])*)(?= \[)")
"""A number with its unit, before the bounds of its interval."""

UNQUOTED = "/=,:._~!()*-[]"
"""What may stand as it is in a fragment, beside letters and digits."""


def render(page: Page) -> str:
    """The page as HTML text."""
    css, script = f"{_read('report.css')}\n{make_style_sheet()}", _read("report.js")
    environment = _open_templates()
    chunks = list(make_chunks(_render_pieces(environment, page)))
    return environment.get_template("report.html.j2").render(
        page=page,
        # Our own files: nothing recorded enters them.
        css=Markup(css),
        script=Markup(script),
        policy=policy(css, script),
        index=pack(make_index(page, chunks)),
        chunks=map(pack, chunks),
        at_most=ATTENTION_AT_MOST,
        told_at_most=TOLD_AT_MOST,
    )


def define(text: str) -> Markup:
    """The text, escaped, with each word of the glossary explained where it first stands."""
    told: set[str] = set()

    def explain(found: re.Match[str]) -> str:
        word = found[1].lower()
        if word in told:
            return found[0]
        told.add(word)
        return f'<dfn title="{escape(_MEANINGS[word])}">{found[0]}</dfn>'

    return Markup(_WORDS.sub(explain, escape(text)))


def emphasise(text: str) -> Markup:
    """Return a text, escaped, with each number that has an interval in bold."""
    return Markup(_WITH_INTERVAL.sub(r"<b>\1</b>", str(escape(text))))


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
        suite.id: [("figures", str(macros.figures(suite.figures))), ("more", str(macros.folded(suite.parts)))]
        for suite in page.suites
    }
    pieces |= {section.id: [("more", str(macros.more(section.parts)))] for section in page.sections if section.packed}
    for suite in page.suites:
        for case in suite.cases:
            sections = ((section.id, str(macros.section(section))) for section in case.sections)
            first = (("head", str(macros.head(case, suite))), ("figures", str(macros.figures(case.figures))))
            pieces[case.id] = [*first, *sections, ("tail", str(macros.tail(case)))]
    return pieces


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
        "define": define,
        "draw": draw,
        "emphasise": emphasise,
        "fragment": lambda target: quote(target, safe=UNQUOTED),
    }
    return environment


def _read(name: str) -> str:
    """A file of ours without indentation and comments; with LF, since a policy's hash is of what a parser sees."""
    text = resources.files("jaxmeter.reporting").joinpath(f"templates/{name}").read_text("utf-8")
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
