"""The view as one HTML file: no network, no script, a content security policy by hash. Equal view, equal bytes."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from . import figures
from .view import Page
from .view.page_model import Plot

ATTENTION_AT_MOST = 5
"""Longer lists hide their head; the rest unfolds below it."""


def render(page: Page) -> str:
    """The page as HTML text."""
    # Normalised to LF, since the policy's hash is of what a parser sees.
    css = resources.files(__package__).joinpath("templates/report.css").read_text("utf-8").replace("\r\n", "\n")
    environment = Environment(
        loader=PackageLoader(__package__ or "reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["picture"] = picture
    return environment.get_template("report.html.j2").render(
        page=page,
        # Our own file: nothing recorded enters it.
        css=Markup(css),
        policy=policy(css),
        at_most=ATTENTION_AT_MOST,
    )


def policy(css: str) -> str:
    """Nothing may be loaded or run: this style sheet and embedded images only."""
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"


def picture(figure: Plot) -> dict[str, str]:
    """The figure's two images as data addresses. As images they are inert, and their ids cannot clash."""
    return {
        name: _address(figures.draw(figure, theme))
        for name, theme in (("light", figures.LIGHT), ("dark", figures.DARK))
    }


def _address(svg: bytes) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"
