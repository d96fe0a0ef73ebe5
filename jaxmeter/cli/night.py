"""Steps of other verbs: The steps of a scheduled run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from jaxmeter.cli.complaints import complain, give_up
from jaxmeter.cli.ending import INCOMPLETE
from jaxmeter.cli.inputs import BudgetsFile, MarkdownFile, MinEffect, VerdictFile
from jaxmeter.document import markdown, terminal
from jaxmeter.harness.record import make_run_id, now, write_bytes
from jaxmeter.harness.record.wording import visible
from jaxmeter.reporting.compare.budgets import LimitError
from jaxmeter.reporting.nightly.outcome import TITLES, Acceptance, accept, build_nightly_page, describe_nightly, encode
from jaxmeter.reporting.nightly.state import NightlyError, NightlyRun, remove_state
from jaxmeter.reporting.nightly.steps import begin, conclude, list_suspects
from jaxmeter.reporting.render import html
from jaxmeter.reporting.store.push import OPTION
from jaxmeter.reporting.store.stores import BrokenOffError, StoreError, open_store
from jaxmeter.reporting.text import hide_home

Out = Annotated[Path, typer.Option(metavar="DIR", help="Folder of runs and of the nightly run in progress.")]
Url = Annotated[
    str,
    typer.Argument(metavar="STORE", help="URL of the store: s3://bucket/folder, gs://bucket/folder, file:///folder."),
]

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Steps of a scheduled run, which `jaxmeter nightly` runs in order.",
)


@app.command("begin")
def begin_command(
    url: Url,
    machine: Annotated[str, typer.Option(metavar="NAME", help="Name of this machine in its runs.")],
    backend: Annotated[str, typer.Option(help="Backend of the runs: cpu, gpu or tpu.")] = "cpu",
    out: Out = Path("results"),
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            help="Pinned run: its id in the store, its folder or its URL. Default: the run accepted last.",
        ),
    ] = None,
    min_effect: MinEffect = "3%",
    budgets_file: BudgetsFile = None,
    with_captures: Annotated[
        bool, typer.Option(OPTION, help="Also push profiler captures; default: keep them on this machine.")
    ] = False,
    restart: Annotated[bool, typer.Option(help="Abandon a nightly run in progress; its runs are kept.")] = False,
    measuring: Annotated[
        list[str] | None, typer.Argument(metavar="[-- OPTION...]", help="Options for `jaxmeter run`.")
    ] = None,
) -> None:
    """Choose the runs to compare with, and write what to measure to DIR/.night/measure."""
    asked = NightlyRun(
        store=url,
        run=make_run_id(backend),
        backend=backend,
        machine=machine,
        begun=now(),
        measuring=tuple(measuring or ()),
        min_effect=min_effect,
        budgets=None if budgets_file is None else str(budgets_file),
        with_captures=with_captures,
    )
    with _errors():
        begun = begin(asked, out, baseline, restart=restart)
    for note in begun.notes:
        complain(note, "warning")
    verb = "goes on" if begun.goes_on else "begins"
    beside = " and ".join(f"{other.run} ({TITLES[other.role]})" for other in begun.nightly.beside) or "no earlier run"
    compared = f"is compared with {beside}" if begun.nightly.is_chosen else "is compared once the store can be reached"
    _say(f"the nightly run of {begun.nightly.run} {verb}; it {compared}")


@app.command("suspects")
def suspects_command(out: Out = Path("results")) -> None:
    """Push the run, and write suspected changes to DIR/.night/confirm-*, if there are any."""
    with _errors(out):
        suspected = list_suspects(out, lambda words: complain(words, "warning"))
    for earlier in suspected:
        _say(f"something may be slower than in {earlier.run} ({TITLES[earlier.role]}); it is timed once more")


@app.command("conclude")
def conclude_command(
    out: Out = Path("results"),
    page_file: Annotated[
        Path | None,
        typer.Option("--page", metavar="FILE", help="HTML file to write; default: reports/report-<run id>.html."),
    ] = None,
    markdown_file: MarkdownFile = None,
    verdict_file: VerdictFile = None,
) -> None:
    """Judge the run, store the verdict next to it, and print where it is; unless it passes, also what the gate prints.

    The exit code is the verdict's.
    """
    with _errors(out):
        concluded = conclude(out)
        page = page_file or Path("reports") / f"report-{concluded.nightly.run}.html"
        write_bytes(page, html.render(build_nightly_page(concluded)).encode("utf8", "replace"))
        if verdict_file is not None:
            write_bytes(verdict_file, encode(concluded.verdict))
        if markdown_file is not None:
            text = markdown.write(describe_nightly(concluded, page, in_full=True))
            write_bytes(markdown_file, text.encode("utf8", "replace"))
        if concluded.is_over:
            remove_state(out)
    terminal.show(describe_nightly(concluded, page))
    raise typer.Exit(concluded.verdict.exit_code)


@app.command("accept")
def accept_command(
    url: Url,
    run: Annotated[str, typer.Argument(metavar="RUN", help="Id of a nightly run in the store.")],
    why: Annotated[str, typer.Option(metavar="TEXT", help="The reason, shown with the run.")],
) -> None:
    """Accept a run as good: later nightly runs compare with it. `begin --baseline` overrides this."""
    with _errors():
        is_new = accept(open_store(url), Acceptance(run=run, why=why, at=now()))
    _say(f"{run}: accepted; it is the pinned run from now on" if is_new else f"{run}: was accepted before")


@contextmanager
def _errors(out: Path | None = None) -> Iterator[None]:
    """What cannot be done becomes its own words and an exit code; what broke off can go on.

    Args:
      out: Where a run was measured that the store has not received.
    """
    try:
        yield
    except (NightlyError, LimitError, StoreError) as error:
        give_up(str(error))
    except BrokenOffError as error:
        kept = "" if out is None else f"; the run is kept in {out}: this command, or the next nightly run, sends it"
        give_up(f"{error}{kept}", INCOMPLETE)
    except OSError as error:
        give_up(
            f"{error.filename or 'a file'}: {error.strerror or error}; free some room or choose another folder",
            INCOMPLETE,
        )


def _say(text: str) -> None:
    typer.echo(visible(hide_home(text)))
