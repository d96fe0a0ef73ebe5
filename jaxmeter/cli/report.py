"""Report: Merge runs into one HTML file, and print a summary."""

from __future__ import annotations

import os
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from jaxmeter.cli.complaints import give_up, write_file
from jaxmeter.cli.inputs import (
    FOLDER,
    KnownFile,
    Last,
    MinEffect,
    Runs,
    Since,
    load_any,
    load_known,
    load_one,
    name_report,
    read_limits,
)
from jaxmeter.document import markdown, terminal
from jaxmeter.harness.record.wording import counted, visible
from jaxmeter.reporting.draw.palette import Theme
from jaxmeter.reporting.load import leave_out_confirming
from jaxmeter.reporting.render import figures, html
from jaxmeter.reporting.view import Page, build
from jaxmeter.reporting.view.overview import summarise

LARGEST_PAGE = 5 * 2**20
"""Bytes. Larger ones are slow to open, and mail servers refuse them."""


def command(
    runs: Runs,
    out: Annotated[
        Path | None, typer.Option(help="HTML file to write; default: reports/report-<run ids>.html.")
    ] = None,
    markdown_file: Annotated[
        Path | None, typer.Option("--markdown", help="Also write a summary for a pull request to this file.")
    ] = None,
    figures_folder: Annotated[
        Path | None,
        typer.Option("--figures", metavar="DIR", help="Also write each figure to this folder, as SVG and PNG."),
    ] = None,
    dark: Annotated[bool, typer.Option("--dark", help="With --figures: draw on a dark background.")] = False,
    since: Since = "",
    last: Last = None,
    open_page: Annotated[
        bool, typer.Option("--open", help="Open the page in a browser, unless the variable CI is set.")
    ] = False,
    confirmed_by: Annotated[
        str | None,
        typer.Option(
            "--confirmed-by",
            metavar="RUN",
            help="Folder of a run of `run --suspects`: confirm or reject suspected changes by it.",
        ),
    ] = None,
    known_file: KnownFile = None,
    min_effect: MinEffect = "3%",
    allow_large: Annotated[
        bool, typer.Option(help=f"Write the page even if it exceeds {LARGEST_PAGE // 2**20} MiB.")
    ] = False,
) -> None:
    """Runs that cannot be read are named and left out."""
    effect, _ = read_limits(min_effect, None)
    known = load_known(known_file)
    loaded = leave_out_confirming(load_any(runs, since, last, only_newest=True))
    page = build(loaded, None if confirmed_by is None else load_one(confirmed_by), effect, known)
    path = out if out is not None else FOLDER / f"report-{name_report(loaded.runs)}.html"
    # A lone surrogate, which only a file name can hold, has no UTF-8 form.
    data = html.render(page).encode("utf-8", "replace")
    if len(data) > LARGEST_PAGE and not allow_large:
        give_up(
            f"the page has {len(data) / 2**20:.1f} MiB, over {LARGEST_PAGE // 2**20}, and was not written: report on "
            "fewer runs (--last N, --since DATE), or give --allow-large"
        )
    write_file(path, data)
    if markdown_file is not None:
        write_file(markdown_file, markdown.write(summarise(page, in_full=True)).encode("utf-8", "replace"))
    if figures_folder is not None:
        _write_figures(figures_folder, page, "dark" if dark else "light")
    terminal.show(summarise(page))
    typer.echo(visible(str(path)))
    if open_page and not os.environ.get("CI"):
        webbrowser.open(path.resolve().as_uri())  # false where there is no browser: the path stands above


def _write_figures(folder: Path, page: Page, theme: Theme) -> None:
    """Write each figure of the page as SVG and PNG, named after the card, suite or case that it is of."""
    by_name = figures.list_figures(page)
    forms: tuple[figures.Form, ...] = ("svg", "png")
    for name, figure in by_name.items():
        for form in forms:
            write_file(folder / f"{name}.{form}", figures.draw(figure, form, theme))
    typer.echo(f"{counted(len(by_name), 'figure')} in {visible(str(folder))}")
