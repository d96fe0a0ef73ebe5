"""`push`, `fetch`, `reach`, `gc`: where runs are kept."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from harness.record import RunFolder

from . import numbers
from .endings import give_up, store_errors
from .store import old
from .store.fetch import fetch_whole
from .store.push import push, reach
from .text import counted, visible

app = typer.Typer()


@app.command("push")
def push_run(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run that has ended.")],
    url: Annotated[
        str, typer.Argument(metavar="URL", help="A store: s3://bucket/folder, gs://bucket/folder, file:///folder.")
    ],
) -> None:
    """Copies a run into a store, whole or not at all; what is there already is not sent again. Removes nothing."""
    with store_errors():
        pushed = push(RunFolder(run), url)
    size = numbers.memory(pushed.size_bytes)
    sent = "was there already" if not pushed.sent else f"sent {counted(pushed.sent, 'file')}"
    typer.echo(visible(f"{pushed.url}: {counted(pushed.files, 'file')}, {size}; {sent}"))


@app.command("fetch")
def fetch_run(
    url: Annotated[str, typer.Argument(metavar="URL", help="A run in a store: s3://bucket/folder/RUN.")],
) -> None:
    """Copies a run of a store into the cache, with the programs that it kept, and prints its folder there."""
    with store_errors():
        typer.echo(str(fetch_whole(url)))


@app.command("reach")
def reach_store(
    url: Annotated[str, typer.Argument(metavar="URL", help="A store, as of `push`.")],
) -> None:
    """Only checks that a store can be reached, with the credentials that there are."""
    with store_errors():
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
        give_up(f"{out}: no such folder")
    with store_errors():
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


def _remove(run: old.OldRun) -> None:
    try:
        old.remove(run)
    except OSError as error:
        give_up(f"{run.folder}: cannot be removed: {error.strerror}; see whose it is")
