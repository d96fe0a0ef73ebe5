"""The command line: a page, a table, a comparison, a verdict or a bug report, of recorded runs."""

from __future__ import annotations

import os
import re
import sys
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from harness.record import RunFolder, write_bytes

from . import compare_commands, diff_terminal, history_commands, html, markdown, night_commands, numbers, terminal
from .compare.budgets import BudgetError, Budgets
from .compare.findings import Changes, merge
from .compare.gate import Judgement, judge
from .compare.pairs import find_pairs
from .compare.program_diff import compare_programs
from .compare.programs import NothingToCompareError
from .compare.surroundings import find_surroundings
from .compare_commands import BudgetsFile, EffectError, FailOn, MarkdownFile, MinEffect, VerdictFile, read_effect
from .console import WIDEST
from .export import FORMATS, ExportError
from .history.known import KnownError, KnownStep, read_known
from .load import Loaded, LoadedRun, choose_folders, leave_out_confirming, load
from .reproduce import NothingToReproduceError, find_subject, make_zip
from .store import old
from .store.fetch import fetch, fetch_whole
from .store.places import BrokenOffError, StoreError, is_url
from .store.push import push, reach
from .text import counted, shorten, visible
from .view import Page, build

UNUSABLE = 2
"""Exit code: nothing could be read, or nothing written."""

BROKEN_OFF = 3
"""Exit code: a store could not be reached; the same command goes on."""

FOLDER = Path("reports")
LONGEST_NAME = 60
MANY_RUNS = 20
"""Fewer are read before one could look at a bar."""

FIGURE_FORMATS = ("svg", "png")
LARGEST_PAGE = 5 * 2**20
"""Bytes. Larger ones are slow to open, and mail servers refuse them."""

_DATE = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?)?")

Runs = Annotated[
    list[str], typer.Argument(metavar="RUN...", help="Run folders, such as results/*; or a store, s3://bucket/folder.")
]
Since = Annotated[str, typer.Option(metavar="DATE", help="Only runs that began then or later, in UTC: 2026-11-22.")]
KnownFile = Annotated[
    Path | None,
    typer.Option("--known", metavar="FILE", help="Steps of the history that are no news, and why, in TOML."),
]
Last = Annotated[int | None, typer.Option(metavar="N", min=1, help="Only the N newest runs.")]

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


app.add_typer(night_commands.app, name="night")


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
    effect, _ = _read_limits(min_effect, None)
    known = _read_known(known_file)
    loaded = leave_out_confirming(_load_any(runs, since, last, only_newest=True))
    page = build(loaded, None if confirmed_by is None else _load_one(confirmed_by), effect, known)
    path = out if out is not None else FOLDER / f"report-{name_report(loaded.runs)}.html"
    # A lone surrogate, which only a file name can hold, has no UTF-8 form.
    data = html.render(page).encode("utf-8", "replace")
    if len(data) > LARGEST_PAGE and not allow_large:
        _complain(
            f"the page has {len(data) / 2**20:.1f} MiB, over {LARGEST_PAGE // 2**20}, and was not written: report on "
            "fewer runs (--last N, --since DATE), or give --allow-large"
        )
        raise typer.Exit(UNUSABLE)
    _write(path, data)
    if markdown_file is not None:
        _write(markdown_file, markdown.render(page).encode("utf-8", "replace"))
    if figures_folder is not None:
        _write_figures(figures_folder, page)
    terminal.show(page, _open_console())
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
        _complain(f"no format '{shorten(to, LONGEST_NAME)}'; formats are {', '.join(FORMATS)}")
        raise typer.Exit(UNUSABLE)
    loaded = _load_any(runs, since, last)
    for warning in loaded.warnings:
        _complain(warning, "warning")
    write, ending = FORMATS[to]
    try:
        data = write(loaded)
    except ExportError as error:
        _complain(str(error))
        raise typer.Exit(UNUSABLE) from None
    path = out if out is not None else FOLDER / f"export-{name_report(loaded.runs)}.{ending}"
    _write(path, data)
    typer.echo(visible(str(path)))


@app.command()
def diff(
    run_a: Annotated[str, typer.Argument(metavar="RUN_A", help="Folder or URL of the earlier run.")],
    run_b: Annotated[str, typer.Argument(metavar="RUN_B", help="Folder or URL of the later run.")],
    case: Annotated[str, typer.Option(help="Name of a case, its workload or suite; * is any text, ? one character.")],
    variant: Annotated[str | None, typer.Option(help="Only this one; default: all with a program in both.")] = None,
) -> None:
    """Says what differs between the programs that two runs compiled for the same variants, and what may explain it."""
    a, b = _load_one(run_a), _load_one(run_b)
    try:
        found = find_pairs(a, b, case, variant)
    except NothingToCompareError as error:
        for line in str(error).split("\n"):
            _complain(line)
        raise typer.Exit(UNUSABLE) from None
    sheet = diff_terminal.Sheet(
        a=a.run.manifest.run_id,
        b=b.run.manifest.run_id,
        diffs=tuple(compare_programs(pair) for pair in found.pairs),
        surroundings=find_surroundings(a.run.manifest, b.run.manifest),
    )
    for warning in found.warnings:
        _complain(warning, "warning")
    diff_terminal.show(sheet, _open_console())


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
        subject = find_subject(_load_one(run), case, variant)
        data = make_zip(subject, warnings)
    except NothingToReproduceError as error:
        _complain(str(error))
        raise typer.Exit(UNUSABLE) from None
    for warning in warnings:
        _complain(warning, "warning")
    path = out if out is not None else FOLDER / f"{subject.name}.zip"
    _write(path, data)
    typer.echo(visible(str(path)))


@app.command("push")
def push_run(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run that has ended.")],
    url: Annotated[
        str, typer.Argument(metavar="URL", help="A store: s3://bucket/folder, gs://bucket/folder, file:///folder.")
    ],
) -> None:
    """Copies a run into a store, whole or not at all; what is there already is not sent again. Removes nothing."""
    with _store_errors():
        pushed = push(RunFolder(run), url)
    size = numbers.memory(pushed.size_bytes)
    sent = "was there already" if not pushed.sent else f"sent {counted(pushed.sent, 'file')}"
    typer.echo(visible(f"{pushed.url}: {counted(pushed.files, 'file')}, {size}; {sent}"))


@app.command("fetch")
def fetch_run(
    url: Annotated[str, typer.Argument(metavar="URL", help="A run in a store: s3://bucket/folder/RUN.")],
) -> None:
    """Copies a run of a store into the cache, with the programs that it kept, and prints its folder there."""
    with _store_errors():
        typer.echo(str(fetch_whole(url)))


@app.command("reach")
def reach_store(
    url: Annotated[str, typer.Argument(metavar="URL", help="A store, as of `push`.")],
) -> None:
    """Only checks that a store can be reached, with the credentials that there are."""
    with _store_errors():
        reach(url)


@app.command()
def gc(
    out: Annotated[Path, typer.Argument(metavar="DIR", help="A folder of runs on this machine.")] = Path("results"),
    keep_days: Annotated[int, typer.Option(metavar="N", min=0, help="Younger runs stay.")] = 30,
    pushed_to: Annotated[
        str | None, typer.Option(metavar="URL", help="What this store does not hold whole stays, too.")
    ] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Remove them; without it they are only listed.")] = False,
) -> None:
    """Lists old runs of a folder, or removes them. Unfinished runs and all else there stay; stores are not touched."""
    if not out.is_dir():
        _complain(f"{out}: no such folder")
        raise typer.Exit(UNUSABLE)
    with _store_errors():
        found = list(old.find_old(out, old.find_time(keep_days, datetime.now(UTC)), pushed_to))
    for one in found:
        size = numbers.memory(one.size_bytes)
        words = f"stays: {one.stays}" if one.stays else "removed" if delete else "old"
        typer.echo(visible(f"{one.folder}: {size}, begun {one.started[:10]}: {words}"))
    goes = [one for one in found if not one.stays]
    if delete:
        for one in goes:
            _remove(one)
    total = f"{counted(len(goes), 'run')}, {numbers.memory(sum(one.size_bytes for one in goes))}"
    hint = "" if delete or not goes else "; --delete removes them"
    typer.echo(f"{total} older than {counted(keep_days, 'day')}{hint}")


@app.command()
def compare(
    baseline: Annotated[str, typer.Argument(metavar="BASELINE", help="Folder or URL of the earlier run.")],
    candidate: Annotated[str, typer.Argument(metavar="CANDIDATE", help="Folder or URL of the later run.")],
    fail_on: Annotated[FailOn, typer.Option("--fail-on", help="What ends this command with 1.")] = FailOn.CONFIRMED,
    min_effect: MinEffect = "3%",
    markdown_file: MarkdownFile = None,
    verdict_file: VerdictFile = None,
    suspects_file: Annotated[
        Path | None,
        typer.Option("--suspects", metavar="FILE", help="Write what a run should confirm, if there is anything."),
    ] = None,
    budgets_file: BudgetsFile = None,
) -> None:
    """Says what changed between two runs; 1 where something got worse, 3 where nothing could be compared."""
    effect, budgets = _read_limits(min_effect, budgets_file)
    changes = compare_commands.compare(_load_one(baseline), _load_one(candidate), effect)
    _warn_of_unused(budgets, changes)
    code = compare_commands.find_code(changes, fail_on, budgets)
    if suspects_file is not None:
        _write(suspects_file, compare_commands.encode_suspects(changes, budgets))
    _write_findings(changes, None, code, markdown_file, verdict_file)
    compare_commands.show(changes, _open_console())
    raise typer.Exit(code)


@app.command()
def history(
    runs: Runs,
    case: Annotated[str, typer.Option(help="Suite, workload or case name; * is any text, ? one character.")] = "*",
    known_file: KnownFile = None,
    min_effect: MinEffect = "3%",
    since: Since = "",
    last: Last = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output on stdout.")] = False,
) -> None:
    """Says since which run a number of a machine is another, what else changed there, and the likely cause."""
    effect, _ = _read_limits(min_effect, None)
    known = _read_known(known_file)
    loaded = leave_out_confirming(_load_any(runs, since, last))
    found = history_commands.find_history(loaded, known, case, effect)
    faults = [*loaded.warnings, *map(visible, history_commands.list_faults(loaded))]
    for warning in faults:
        _complain(warning, "warning")
    for run in history_commands.find_unused(known, loaded):
        _complain(f"--known: no run '{shorten(run, LONGEST_NAME)}' is among these", "warning")
    if not any(one.series for one in found):
        _complain(history_commands.explain_nothing(loaded, case))
        raise typer.Exit(UNUSABLE)
    if as_json:
        sys.stdout.buffer.write(history_commands.encode(found, faults))
    else:
        history_commands.show(found, _open_console())


@app.command()
def limits(min_effect: MinEffect = "3%", budgets_file: BudgetsFile = None) -> None:
    """Only checks that budgets and minimum effect can be used."""
    _read_limits(min_effect, budgets_file)


@app.command()
def gate(
    baseline: Annotated[str, typer.Argument(metavar="BASELINE", help="Folder or URL of the earlier run.")],
    candidate: Annotated[str, typer.Argument(metavar="CANDIDATE", help="Folder or URL of a run --against it.")],
    confirmed_by: Annotated[
        str | None,
        typer.Option("--confirmed-by", metavar="RUN", help="Folder of the run that timed the suspects alone."),
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Judge what follows from programs alone, and no time.")
    ] = False,
    min_effect: MinEffect = "3%",
    budgets_file: BudgetsFile = None,
    markdown_file: MarkdownFile = None,
    verdict_file: VerdictFile = None,
) -> None:
    """Judges a run: 0 passed, 1 a confirmed regression, 3 no answer that can be relied on."""
    effect, budgets = _read_limits(min_effect, budgets_file)
    before = _load_one(baseline)
    changes = compare_commands.compare(before, _load_one(candidate), effect)
    confirmation = None
    if confirmed_by is not None:
        confirmation = compare_commands.compare(before, _load_one(confirmed_by), effect)
    _warn_of_unused(budgets, changes)
    judgement = judge(changes, budgets, confirmed_by=confirmation, exact=exact)
    changes = changes if confirmation is None else merge(changes, confirmation)
    _write_findings(changes, judgement, judgement.code, markdown_file, verdict_file)
    compare_commands.show(changes, _open_console(), judgement)
    raise typer.Exit(judgement.code)


def _read_limits(min_effect: str, budgets_file: Path | None) -> tuple[float, Budgets]:
    """The smallest difference that counts, and what is allowed."""
    try:
        effect = read_effect(min_effect)
        budgets = compare_commands.choose_budgets(budgets_file, effect)
        return budgets.least_time(effect), budgets
    except (EffectError, BudgetError) as error:
        _complain(str(error))
        raise typer.Exit(UNUSABLE) from None


def _read_known(path: Path | None) -> tuple[KnownStep, ...]:
    """The steps that are no news."""
    try:
        return () if path is None else read_known(path)
    except KnownError as error:
        _complain(str(error))
        raise typer.Exit(UNUSABLE) from None


def _warn_of_unused(budgets: Budgets, changes: Changes) -> None:
    """Says which budgets are of no case."""
    for pattern in budgets.find_unused({f"{one.suite}/{one.case}" for one in changes.found} | set(changes.names)):
        _complain(f'the budget of "{shorten(pattern, LONGEST_NAME)}" matches no case', "warning")


def _write_findings(
    changes: Changes, judgement: Judgement | None, code: int, markdown_file: Path | None, verdict_file: Path | None
) -> None:
    if markdown_file is not None:
        _write(markdown_file, compare_commands.write_markdown(changes, judgement).encode("utf-8", "replace"))
    if verdict_file is not None:
        _write(verdict_file, compare_commands.encode_verdict(changes, code, judgement))


def _load_any(runs: Sequence[str], since: str, last: int | None, *, only_newest: bool = False) -> Loaded:
    """The runs in some folders and stores; without any there is nothing to do."""
    if since and not _DATE.fullmatch(since):
        _complain(f"--since '{shorten(since, LONGEST_NAME)}' is no date; write 2026-11-22 or 2026-11-22T10:30")
        raise typer.Exit(UNUSABLE)
    folders, warnings = _locate(runs)
    chosen = choose_folders(folders, since=since, last=last) if since or last is not None else folders
    if folders and not chosen:
        _complain(f"none of {counted(len(folders), 'run')} began on {since} or later; give an earlier --since")
        raise typer.Exit(UNUSABLE)
    loaded = _load_with_progress(chosen, only_newest=only_newest)
    loaded = replace(loaded, warnings=(*map(visible, warnings), *loaded.warnings))
    if not loaded.runs:
        for warning in loaded.warnings:
            _complain(warning)
        _complain("no usable run; give folders that `python -m harness run` has written, such as results/*")
        raise typer.Exit(UNUSABLE)
    return loaded


def _load_with_progress(folders: Sequence[Path], *, only_newest: bool) -> Loaded:
    """The runs, with a bar in a terminal where they are many."""
    console = Console(stderr=True)
    shown = len(folders) >= MANY_RUNS and console.is_terminal
    with Progress(console=console, transient=True, disable=not shown) as progress:
        task = progress.add_task("reading runs", total=len(folders))
        return load(folders, only_newest=only_newest, on_read=lambda: progress.advance(task))


def _locate(runs: Sequence[str]) -> tuple[list[Path], list[str]]:
    """Folders of what is named, those of a store in its cache; and what of a store is no whole run."""
    folders: list[Path] = []
    warnings: list[str] = []
    for run in runs:
        if not is_url(run):
            folders.append(Path(run))
            continue
        with _store_errors():
            found = fetch(run)
        folders += found.folders
        warnings += found.warnings
    return folders, warnings


@contextmanager
def _store_errors() -> Iterator[None]:
    """What a store refuses becomes an exit code; what broke off is none of usage."""
    try:
        yield
    except StoreError as error:
        _complain(str(error))
        raise typer.Exit(UNUSABLE) from None
    except BrokenOffError as error:
        _complain(str(error))
        raise typer.Exit(BROKEN_OFF) from None


def _load_one(run: str) -> LoadedRun:
    """The run in a folder, or of a store with all that it keeps; without one there is nothing to do."""
    folder = Path(run)
    if is_url(run):
        with _store_errors():
            folder = fetch_whole(run)
    loaded = load([folder])
    for warning in loaded.warnings:
        _complain(warning, "warning" if loaded.runs else "error")
    if not loaded.runs:
        raise typer.Exit(UNUSABLE)
    return loaded.runs[0]


def _remove(run: old.OldRun) -> None:
    try:
        old.remove(run)
    except OSError as error:
        _complain(f"{run.folder}: cannot be removed: {error.strerror}; see whose it is")
        raise typer.Exit(UNUSABLE) from None


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
            _write(path, figures.draw(plot, form))
    typer.echo(f"{counted(len(plots), 'figure')} in {visible(str(folder))}")


def _name_file(text: str) -> str:
    """Only characters that every file system takes."""
    return re.sub(r"[^A-Za-z0-9.-]+", "_", text).strip("_")[:LONGEST_NAME]


def _write(path: Path, data: bytes | None) -> None:
    """Writes a file anew, or removes it where there is nothing to be written."""
    try:
        if str(path) == "-" or (path.exists() and not path.is_file()):  # a device would be replaced, not written to
            _complain(f"{path}: no file that can be written anew; choose another")
            raise typer.Exit(UNUSABLE)
        if data is None:
            path.unlink(missing_ok=True)
        else:
            write_bytes(path, data)
    except (OSError, ValueError) as error:
        _complain(f"{path}: cannot be written: {error}; choose another file with --out")
        raise typer.Exit(UNUSABLE) from None


def _open_console() -> Console:
    # Rich takes 80 columns where there is no terminal; a log has room for all.
    return Console(width=None if sys.stdout.isatty() else WIDEST)


def _complain(message: str, kind: str = "error") -> None:
    typer.echo(f"{kind}: {visible(message)}", err=True)
