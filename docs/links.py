"""Sphinx extension: links from pages to files of the checkout that lie outside docs/.

On a code host such a link opens the file. The site has pages for some of these files. Of a link to any other file it
shows the text alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref

CHECKOUT = Path(__file__).parent.parent

PAGES = {
    "README.md": "index",
    "CONTRIBUTING.md": "project/contributing",
    "CHANGELOG.md": "project/changelog",
    "benchmarks/README.md": "project/benchmarks",
    "jaxmeter/suites/README.md": "project/suites",
}
"""Which page of the site shows a file, from the root of the checkout."""


def setup(app: Any) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    app.connect("doctree-read", redirect_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def redirect_links(app: Any, document: nodes.document) -> None:
    """Point each link out of docs/, and each link of an included file, to a page of the site or to nothing."""
    docs = Path(app.srcdir)
    for link in list(document.findall(pending_xref)):
        if link["reftype"] != "myst":
            continue
        path, anchor = _find_target(docs, link)
        name = path.relative_to(CHECKOUT).as_posix() if path.is_relative_to(CHECKOUT) else ""
        page = PAGES.get(name) or _name_page(docs, path)
        if page:
            link["refdomain"], link["reftarget"], link["reftargetid"] = "doc", page, anchor
        elif path.exists():
            link.replace_self(link.children)


def _find_target(docs: Path, link: pending_xref) -> tuple[Path, str | None]:
    """Return the path that a link leads to, and its anchor if it has one."""
    if link["refdomain"] == "doc":  # a page, or by its absolute path a Markdown file outside docs/; without its ending
        return (docs / f"{link['reftarget']}.md").resolve(), link["reftargetid"]
    path, _, anchor = link["reftarget"].partition("#")
    return (Path(link.source or docs / link["refdoc"]).parent / path).resolve(), anchor or None


def _name_page(docs: Path, path: Path) -> str | None:
    """Return how Sphinx names a page in docs/; None if the path is no such page."""
    if path.suffix == ".md" and path.is_file() and path.is_relative_to(docs):
        return path.relative_to(docs).with_suffix("").as_posix()
    return None
