"""What verbs of reports take: common options, runs, limits, known change points. Unusable input ends them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from jaxmeter.cli.complaints import complain, give_up, report_store_errors, warn
from jaxmeter.cli.ending import UNUSABLE
from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.record.wording import counted, shorten, visible
from jaxmeter.reporting.compare import budgets
from jaxmeter.reporting.compare.budgets import Budgets, LimitError
from jaxmeter.reporting.load import Loaded, choose_folders, load
from jaxmeter.reporting.store.fetch import fetch, fetch_whole
from jaxmeter.reporting.store.stores import is_url

if TYPE_CHECKING:
    from jaxmeter.reporting.history import KnownChangePoint

FOLDER = Path("reports")
"""Where files are written that no option names."""

LONGEST_NAME = 60
"""Characters of what a user wrote, in a complaint."""

MANY_RUNS = 20
"""Fewer are read before one could look at a bar."""

_DATE = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?)?")

Runs = Annotated[
    list[str],
    typer.Argument(metavar="RUN...", help="Run folders, such as results/*, or the URL of a store, s3://bucket/folder."),
]
Since = Annotated[
    str,
    typer.Option(
        metavar="DATE", help="Use only runs that started on this day (UTC) or later: 2026-11-22. Default: all."
    ),
]
KnownFile = Annotated[
    Path | None,
    typer.Option("--known", metavar="FILE", help="TOML file of known change points, with the reason of each."),
]
Last = Annotated[int | None, typer.Option(metavar="N", min=1, help="Use only the N newest runs; default: all.")]
MinEffect = Annotated[
    str, typer.Option("--min-effect", metavar="PERCENT", help="Ignore changes of a time that are smaller than this.")
]
BudgetsFile = Annotated[
    Path | None,
    typer.Option("--budgets", metavar="FILE", help="TOML file of allowed increases, by case and metric."),
]
MarkdownFile = Annotated[
    Path | None,
    typer.Option("--markdown", metavar="FILE", help="Also write a summary for a pull request to this Markdown file."),
]
VerdictFile = Annotated[
    Path | None, typer.Option("--verdict", metavar="FILE", help="Also write all findings to this JSON file.")
]


def read_limits(min_effect: str, budgets_file: Path | None) -> tuple[float, Budgets]:
    """The smallest difference that counts, and what is allowed."""
    try:
        return budgets.read_limits(min_effect, budgets_file)
    except LimitError as error:
        give_up(str(error))


def load_known(path: Path | None) -> tuple[KnownChangePoint, ...]:
    """The change points that are no news."""
    if path is None:
        return ()
    from jaxmeter.reporting.history import KnownError, read_known  # with scipy, which a verb without the file spares

    try:
        return read_known(path)
    except KnownError as error:
        give_up(str(error))


def load_any(runs: Sequence[str], since: str, last: int | None, *, only_newest: bool = False) -> Loaded:
    """The runs in some folders and stores; without any there is nothing to do."""
    if since and not _DATE.fullmatch(since):
        give_up(f"--since '{shorten(since, LONGEST_NAME)}' is not a date; write 2026-11-22 or 2026-11-22T10:30")
    folders, warnings, older = _locate(runs, since, last)
    chosen = choose_folders(folders, since=since, last=last) if since or last is not None else folders
    if not chosen and (known := len(folders) + older):
        for warning in warnings:
            complain(visible(warning))
        give_up(f"none of {counted(known, 'run')} began on {since} or later; give an earlier --since")
    loaded = _load_with_progress(chosen, only_newest=only_newest)
    loaded = replace(loaded, warnings=(*map(visible, warnings), *loaded.warnings))
    if not loaded.runs:
        for warning in loaded.warnings:
            complain(warning)
        give_up("no usable run; give folders that `jaxmeter run` has written, such as results/*")
    return loaded


def _load_with_progress(folders: Sequence[Path], *, only_newest: bool) -> Loaded:
    """The runs, with a bar in a terminal where they are many."""
    console = Console(stderr=True)
    shown = len(folders) >= MANY_RUNS and console.is_terminal
    with Progress(console=console, transient=True, disable=not shown) as progress:
        task = progress.add_task("reading runs", total=len(folders))
        return load(folders, only_newest=only_newest, on_read=lambda: progress.advance(task))


def _locate(runs: Sequence[str], since: str, last: int | None) -> tuple[list[Path], list[str], int]:
    """Folders of what is named, those of a store in its cache; what of a store is no whole run; how many are older."""
    folders: list[Path] = []
    warnings: list[str] = []
    older = 0
    for run in runs:
        if not is_url(run):
            folders.append(Path(run))
            continue
        with report_store_errors():
            fetched = fetch(run, since=since, last=last)
        folders += fetched.folders
        warnings += fetched.warnings
        older += fetched.older
    return folders, warnings, older


def load_one(run: str) -> Run:
    """The run in a folder, or of a store with all that it keeps; without one there is nothing to do."""
    folder = Path(run)
    if is_url(run):
        with report_store_errors():
            folder = fetch_whole(run, note=warn)
    loaded = load([folder])
    for warning in loaded.warnings:
        complain(warning, "warning" if loaded.runs else "error")
    if not loaded.runs:
        raise typer.Exit(UNUSABLE)
    return loaded.runs[0]


def name_report(runs: Sequence[Run]) -> str:
    """The run's id, or the first and the last; only characters that every file system takes."""
    ids = [re.sub(r"[^A-Za-z0-9._-]", "_", loaded.manifest.run_id)[:LONGEST_NAME] for loaded in runs]
    return ids[0] if len(ids) == 1 else f"{ids[0]}..{ids[-1]}"
