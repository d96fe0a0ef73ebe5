"""The command line: `report` merges runs into one page."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from harness.record import Run, write_bytes

from . import html, markdown, terminal
from .load import load
from .text import visible
from .view import build

UNUSABLE = 2
"""Exit code: nothing could be read, or nothing written."""

FOLDER = Path("reports")
LONGEST_NAME = 60

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback()
def main() -> None:
    """Reports on recorded runs. Needs no JAX."""


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders, for example results/*.")],
    out: Annotated[Path | None, typer.Option(help="The HTML file; default: reports/report-<run ids>.html.")] = None,
    markdown_file: Annotated[
        Path | None, typer.Option("--markdown", help="Also write a summary for a pull request to this file.")
    ] = None,
) -> None:
    """Merges runs into one HTML file, and prints the summary. What cannot be read is named and left out."""
    loaded = load(runs)
    if not loaded.runs:
        for warning in loaded.warnings:
            _complain(warning)
        _complain("no usable run; give folders that `python -m harness run` has written, such as results/*")
        raise typer.Exit(UNUSABLE)
    page = build(loaded)
    path = out if out is not None else FOLDER / f"report-{report_name(loaded.runs)}.html"
    _write(path, html.render(page))
    if markdown_file is not None:
        _write(markdown_file, markdown.render(page))
    terminal.show(page, _console())
    typer.echo(visible(str(path)))


def report_name(runs: Sequence[Run]) -> str:
    """The run's id, or the first and the last; only characters that every file system takes."""
    ids = [re.sub(r"[^A-Za-z0-9._-]", "_", run.manifest.run_id)[:LONGEST_NAME] for run in runs]
    return ids[0] if len(ids) == 1 else f"{ids[0]}..{ids[-1]}"


def _write(path: Path, text: str) -> None:
    try:
        # A lone surrogate, which only a file name can hold, has no UTF-8 form.
        write_bytes(path, text.encode("utf-8", "replace"))
    except (OSError, ValueError) as error:
        _complain(f"{path}: cannot be written: {error}; choose another file with --out")
        raise typer.Exit(UNUSABLE) from None


def _console() -> Console:
    # Rich takes 80 columns where there is no terminal; a log has room for all.
    return Console(width=None if sys.stdout.isatty() else terminal.WIDEST)


def _complain(message: str) -> None:
    typer.echo(f"error: {visible(message)}", err=True)
