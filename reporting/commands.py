"""The command line: a page, a table, a comparison, a verdict or a bug report, of recorded runs."""

from __future__ import annotations

import os
import re
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from . import change_commands, diff_terminal, html, markdown, night_commands, store_commands, terminal
from .compare.pairs import find_pairs
from .compare.program_diff import compare_programs
from .compare.programs import NothingToCompareError
from .compare.surroundings import find_surroundings
from .console import open_console
from .endings import UNUSABLE, complain, give_up, write_file
from .export import FORMATS, ExportError
from .inputs import LONGEST_NAME, KnownFile, Last, MinEffect, Runs, Since, load_any, load_known, load_one, read_limits
from .load import LoadedRun, leave_out_confirming
from .reproduce import NothingToReproduceError, find_subject, make_zip
from .text import counted, shorten, visible
from .view import Page, build

FOLDER = Path("reports")
FIGURE_FORMATS = ("svg", "png")
LARGEST_PAGE = 5 * 2**20
"""Bytes. Larger ones are slow to open, and mail servers refuse them."""

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback()
def main() -> None:
    """Reports on recorded runs. Needs no JAX."""


@app.command()
def report(
    runs: Runs,
    out: Annotated[Path | None, typer.Option(help="The HTML file; default: reports/report-<run ids>.html.")] = None,
    markdown_file: Annotated[
        Path | None, typer.Option("--markdown", help="Also write a summary for a pull request to this file.")
    ] = None,
    figures_folder: Annotated[
        Path | None, typer.Option("--figures", metavar="DIR", help="Also write each figure there, as SVG and PNG.")
    ] = None,
    since: Since = "",
    last: Last = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser; not where CI is set.")] = False,
    confirmed_by: Annotated[
        str | None,
        typer.Option("--confirmed-by", metavar="RUN", help="Folder of a run that timed suspects alone, for a gate."),
    ] = None,
    known_file: KnownFile = None,
    min_effect: MinEffect = "3%",
    allow_large: Annotated[bool, typer.Option(help=f"Write a page of over {LARGEST_PAGE // 2**20} MiB, too.")] = False,
) -> None:
    """Merges runs into one HTML file, and prints the summary. What cannot be read is named and left out."""
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
        write_file(markdown_file, markdown.render(page).encode("utf-8", "replace"))
    if figures_folder is not None:
        _write_figures(figures_folder, page)
    terminal.show(page, open_console())
    typer.echo(visible(str(path)))
    if open_page and not os.environ.get("CI"):
        webbrowser.open(path.resolve().as_uri())  # false where there is no browser: the path stands above


@app.command()
def export(
    runs: Runs,
    to: Annotated[str, typer.Option(metavar="FORMAT", help=f"One of {', '.join(FORMATS)}.")] = "csv",
    out: Annotated[Path | None, typer.Option(help="The file; default: reports/export-<run ids>.<format>.")] = None,
    since: Since = "",
    last: Last = None,
) -> None:
    """Writes runs as a table, a row for each case, variant and metric. What cannot be read is named and left out."""
    if to not in FORMATS:
        give_up(f"no format '{shorten(to, LONGEST_NAME)}'; formats are {', '.join(FORMATS)}")
    loaded = load_any(runs, since, last)
    for warning in loaded.warnings:
        complain(warning, "warning")
    write, ending = FORMATS[to]
    try:
        data = write(loaded)
    except ExportError as error:
        give_up(str(error))
    path = out if out is not None else FOLDER / f"export-{name_report(loaded.runs)}.{ending}"
    write_file(path, data)
    typer.echo(visible(str(path)))


@app.command()
def diff(
    run_a: Annotated[str, typer.Argument(metavar="RUN_A", help="Folder or URL of the earlier run.")],
    run_b: Annotated[str, typer.Argument(metavar="RUN_B", help="Folder or URL of the later run.")],
    case: Annotated[str, typer.Option(help="Name of a case, its workload or suite; * is any text, ? one character.")],
    variant: Annotated[str | None, typer.Option(help="Only this one; default: all with a program in both.")] = None,
) -> None:
    """Says what differs between the programs that two runs compiled for the same variants, and what may explain it."""
    a, b = load_one(run_a), load_one(run_b)
    try:
        found = find_pairs(a, b, case, variant)
    except NothingToCompareError as error:
        for line in str(error).split("\n"):
            complain(line)
        raise typer.Exit(UNUSABLE) from None
    sheet = diff_terminal.Sheet(
        a=a.run.manifest.run_id,
        b=b.run.manifest.run_id,
        diffs=tuple(compare_programs(pair) for pair in found.pairs),
        surroundings=find_surroundings(a.run.manifest, b.run.manifest),
    )
    for warning in found.warnings:
        complain(warning, "warning")
    diff_terminal.show(sheet, open_console())


@app.command()
def reproduce(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run's folder or URL.")],
    case: Annotated[str, typer.Option(help="Name of the case, or what no other case matches; * is any text.")],
    variant: Annotated[str | None, typer.Option(help="Which variant; needed where several keep a program.")] = None,
    out: Annotated[Path | None, typer.Option(help="The file; default: reports/<case>-<variant>.zip.")] = None,
) -> None:
    """Writes a zip for a bug report: one program, what was measured of it, and a script that runs it with jax alone."""
    warnings: list[str] = []
    try:
        subject = find_subject(load_one(run), case, variant)
        data = make_zip(subject, warnings)
    except NothingToReproduceError as error:
        give_up(str(error))
    for warning in warnings:
        complain(warning, "warning")
    path = out if out is not None else FOLDER / f"{subject.name}.zip"
    write_file(path, data)
    typer.echo(visible(str(path)))


app.add_typer(change_commands.app)
app.add_typer(store_commands.app)
app.add_typer(night_commands.app, name="night")


def name_report(runs: Sequence[LoadedRun]) -> str:
    """The run's id, or the first and the last; only characters that every file system takes."""
    ids = [re.sub(r"[^A-Za-z0-9._-]", "_", loaded.run.manifest.run_id)[:LONGEST_NAME] for loaded in runs]
    return ids[0] if len(ids) == 1 else f"{ids[0]}..{ids[-1]}"


def _write_figures(folder: Path, page: Page) -> None:
    """Each figure of the page named after what it shows."""
    from . import figures  # whoever asks for none need not wait for matplotlib

    plots = [
        (f"{suite.name} {part.title}", part.plot)
        for suite in page.suites
        for part in (*suite.parts, *suite.more)
        if part.plot is not None
    ]
    for number, (title, plot) in enumerate(plots, 1):
        for form in FIGURE_FORMATS:
            path = folder / f"{number:02d}-{_name_file(title)}.{form}"
            write_file(path, figures.draw(plot, form))
    typer.echo(f"{counted(len(plots), 'figure')} in {visible(str(folder))}")


def _name_file(text: str) -> str:
    """Only characters that every file system takes."""
    return re.sub(r"[^A-Za-z0-9.-]+", "_", text).strip("_")[:LONGEST_NAME]
