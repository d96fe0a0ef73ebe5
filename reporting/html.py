"""The view as one HTML file: no network, no script, a content security policy by hash. Equal view, equal bytes."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from . import panels
from .view import Page

ATTENTION_AT_MOST = 5
TOLD_AT_MOST = 8
"""Items and answers of the first screen; the rest unfolds below them."""


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
    environment.filters |= {"panels": panels.draw, "keys": panels.list_keys}
    environment.globals["box"] = panels
    return environment.get_template("report.html.j2").render(
        page=page,
        # Our own file: nothing recorded enters it.
        css=Markup(css),
        policy=policy(css),
        at_most=ATTENTION_AT_MOST,
        told_at_most=TOLD_AT_MOST,
    )


def policy(css: str) -> str:
    """Nothing may be loaded or run: this style sheet only."""
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
