"""Store: List old runs of a folder, or remove them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from jaxmeter.cli.complaints import give_up, report_store_errors
from jaxmeter.document import numbers
from jaxmeter.harness.record.wording import counted, visible
from jaxmeter.reporting.store import old
from jaxmeter.reporting.store.push import OPTION


def command(
    out: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of runs on this machine.")] = Path("results"),
    keep_days: Annotated[int, typer.Option(metavar="N", min=0, help="Keep what was made or used in N days.")] = 30,
    pushed_to: Annotated[
        str | None, typer.Option(metavar="URL", help="Remove only runs that this store holds completely.")
    ] = None,
    environments: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="List Python environments of upgrades and bisections instead of runs."),
    ] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Remove what is listed; default: only list.")] = False,
) -> None:
    """A run or an environment is old if nothing made or used it in the last --keep-days days.

    Unfinished runs and other files are kept. Stores are not changed.
    """
    if environments is not None:
        _list_environments(environments, keep_days, delete=delete)
        return
    if not out.is_dir():
        give_up(f"{out}: no such folder")
    with report_store_errors():
        old_runs = list(old.find_old(out, keep_days, datetime.now(UTC), pushed_to))
    for run in old_runs:
        size = numbers.memory(run.size_bytes)
        words = f"stays: {run.stays}" if run.stays else f"{'removed' if delete else 'old'}{_describe_only_here(run)}"
        typer.echo(visible(f"{run.folder}: {size}, begun {run.started[:10]}: {words}"))
    goes = [run for run in old_runs if not run.stays]
    if delete:
        for run in goes:
            with _report_undeletable(run.folder):
                old.remove(run)
    total = f"{counted(len(goes), 'run')}, {numbers.memory(sum(run.size_bytes for run in goes))}"
    hint = "" if delete or not goes else "; --delete removes them"
    typer.echo(f"{total} older than {counted(keep_days, 'day')}{hint}")


def _list_environments(folder: Path, keep_days: int, *, delete: bool) -> None:
    if not folder.is_dir():
        give_up(f"{folder}: no such folder")
    environments = list(old.find_unused(folder, old.find_time(keep_days, datetime.now(UTC))))
    for environment in environments:
        packages = f", {environment.packages}" if environment.packages else ""
        words = f"last used {environment.used:%Y-%m-%d}{packages}: {'removed' if delete else 'unused'}"
        typer.echo(visible(f"{environment.folder}: {numbers.memory(environment.size_bytes)}, {words}"))
    if delete:
        for environment in environments:
            with _report_undeletable(environment.folder):
                old.remove_environment(environment)
    size = numbers.memory(sum(environment.size_bytes for environment in environments))
    total = f"{counted(len(environments), 'environment')}, {size}"
    hint = "" if delete or not environments else "; --delete removes them"
    typer.echo(f"{total} unused for {counted(keep_days, 'day')}{hint}")


def _describe_only_here(run: old.OldRun) -> str:
    """Return what is lost with a run that its store holds without some captures."""
    if not run.only_here:
        return ""
    return f", with the only copy of {run.only_here}; `jaxmeter push RUN URL {OPTION}` sends them"


@contextmanager
def _report_undeletable(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        give_up(f"{folder}: cannot be removed: {error.strerror}; see whose it is")
