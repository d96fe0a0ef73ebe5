"""Report: Show where the time goes in a profiler capture."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, NoReturn

import msgspec
import typer
from rich.console import Console, RenderableType
from rich.progress import Progress

from jaxmeter.cli.complaints import give_up, report_store_errors, warn
from jaxmeter.cli.ending import INCOMPLETE
from jaxmeter.document import terminal
from jaxmeter.harness.machine.platforms import BACKENDS
from jaxmeter.harness.record.environment import Environment
from jaxmeter.harness.record.wording import visible
from jaxmeter.harness.traces.bound import find_bound, find_roofs
from jaxmeter.harness.traces.captures import (
    Capture,
    Captures,
    NoCaptureError,
    choose_host,
    find_captures,
    read_environment,
)
from jaxmeter.harness.traces.growth import find_grown, list_unlike
from jaxmeter.harness.traces.reading import require_step
from jaxmeter.harness.traces.serve import DEFAULT_PORT, ServeError, copy_captures, serve
from jaxmeter.harness.traces.summary import MOST_OPERATIONS, find_slowest, summarise_capture
from jaxmeter.harness.traces.xplane import Space
from jaxmeter.reporting.store.fetch import fetch_whole
from jaxmeter.reporting.store.stores import is_url
from jaxmeter.reporting.view.captures import Shown, describe_capture, describe_captures, describe_difference

TOP = 10
"""Operations that a terminal names; JSON names MOST_OPERATIONS."""

ALL = sys.maxsize

LARGE_BYTES = 20 * 10**6
"""Smaller captures are read before a person could look at a bar: 1 s for 100,000 events, which have about 10 MB."""

Watch = Callable[[Space], None]


@dataclass(frozen=True)
class _Choice:
    """What of the captures is read, and how it is shown.

    Args:
      step: A name; None for the steps that last longest.
      environment: Of the run that tells peaks; None where none was given.
    """

    step: str | None
    environment: Environment | None
    as_json: bool


def command(
    path: Annotated[
        str,
        typer.Argument(metavar="PATH", help="A *.xplane.pb, the log folder of a jax.profiler session, or a run."),
    ],
    path_b: Annotated[
        str | None, typer.Argument(metavar="PATH_B", help="A later capture: show the operations that grew.")
    ] = None,
    session: Annotated[
        str | None, typer.Option(metavar="NAME", help="Session of a log folder; default: the newest.")
    ] = None,
    host: Annotated[
        str | None, typer.Option(metavar="NAME", help="Host of a capture of several hosts; default: the slowest.")
    ] = None,
    case: Annotated[
        str | None,
        typer.Option(
            "--case",
            "--select",
            help="Case of a run, by its own, its workload's or its suite's name; * is any text, ? one character.",
        ),
    ] = None,
    variant: Annotated[str | None, typer.Option(help="Variant of a run; default: all.")] = None,
    step: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name of the annotated steps to read; default: the name with the most time."),
    ] = None,
    peaks: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            help="Run with the peaks of the device, needed for a CPU; default: the known peaks of the device.",
        ),
    ] = None,
    top: Annotated[
        int | None, typer.Option(metavar="N", min=1, help=f"Number of operations to list; default: {TOP}.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON to stdout.")] = False,
    opens: Annotated[
        bool, typer.Option("--open", help="Show the captures in xprof, on this machine only, until Ctrl-C.")
    ] = False,
    port: Annotated[
        int, typer.Option(metavar="N", min=1, max=65535, help="Port of 127.0.0.1 for --open.")
    ] = DEFAULT_PORT,
) -> None:
    """With a second path it shows the differences."""
    paths = [_fetch(given) for given in (path, path_b) if given is not None]
    try:
        choice = _Choice(step, None if peaks is None else read_environment(_fetch(peaks)), as_json)
        sides = [find_captures(source, session=session, case=case, variant=variant) for source in paths]
        if host is not None:
            sides = [replace(side, captures=(choose_host(side, host),)) for side in sides]
        if opens:
            _open([capture for side in sides for capture in side.captures], port)
        if len(sides) == 2:
            is_healthy = _compare(sides[0], sides[1], choice, top or TOP)
        else:
            is_healthy = _show(sides[0], choice, top)
    except NoCaptureError as error:
        give_up(str(error))
    except OSError as error:
        give_up(f"{error.filename or path}: cannot be read: {error.strerror or error}")
    if not is_healthy:
        raise typer.Exit(INCOMPLETE)


def _open(captures: Sequence[Capture], port: int) -> NoReturn:
    """Serve copies of captures until Ctrl-C."""
    with tempfile.TemporaryDirectory(prefix="jaxmeter-") as folder:
        count = copy_captures(captures, Path(folder))
        words = f"{count} captures at http://127.0.0.1:{port}; the charts need a network; Ctrl-C ends the server"
        typer.echo(words, err=True)
        try:
            serve(Path(folder), port)
        except ServeError as error:
            give_up(str(error))
        except KeyboardInterrupt:
            pass
    raise typer.Exit


def _fetch(path: str) -> Path:
    if not is_url(path):
        return Path(path)
    with report_store_errors():
        return fetch_whole(path, note=warn)


def _show(side: Captures, choice: _Choice, top: int | None) -> bool:
    """Print one path's captures; return whether all are healthy."""
    most = top or (MOST_OPERATIONS if choice.as_json else TOP)
    shown = _summarise(side.captures, choice, most)
    if choice.as_json:
        sys.stdout.buffer.write(_encode(shown, side.other_sessions))
    elif len(side.subjects) > 1:
        terminal.show(describe_captures(shown))
    else:
        terminal.show(describe_capture(_choose_slowest(shown), side.other_sessions, shown))
    return all(capture.summary.is_healthy for capture in shown)


def _compare(before: Captures, after: Captures, choice: _Choice, top: int) -> bool:
    """Print what differs between two paths' captures; return whether both are healthy."""
    for side in (before, after):
        if len(side.subjects) > 1:
            case, variant, _ = side.subjects[0]
            raise NoCaptureError(
                f"a run has {len(side.subjects)} captures, and two are compared; choose one by --case and --variant, "
                f"such as --case '{case}' --variant {variant}"
            )
    pair = [_choose_slowest(_summarise(side.captures, choice, ALL)) for side in (before, after)]
    if choice.as_json:
        sys.stdout.buffer.write(_encode_difference(*pair))
    else:
        terminal.show(describe_difference(pair[0], pair[1], top))
    return all(capture.summary.is_healthy for capture in pair)


def _choose_slowest(shown: Sequence[Shown]) -> Shown:
    return shown[find_slowest([capture.summary for capture in shown])]


def _summarise(captures: Sequence[Capture], choice: _Choice, most: int) -> list[Shown]:
    with _watch(captures, quiet=choice.as_json) as watch:
        return [_summarise_one(capture, choice, most, watch) for capture in captures]


def _summarise_one(capture: Capture, choice: _Choice, most: int, watch: Watch | None) -> Shown:
    backend = BACKENDS.get(capture.platform)
    summary = summarise_capture(
        capture.path,
        capture.read_texts(),
        has_device=None if backend is None else not backend.is_host,
        step_name=choice.step,
        most_operations=most,
        watch=watch,
    )
    if not summary.is_healthy:
        return Shown(capture, summary, None)
    try:
        require_step(summary, choice.step)
    except NoCaptureError as error:
        raise NoCaptureError(f"{capture.path}: {error}") from None
    roofs = find_roofs(summary, choice.environment or capture.environment)
    return Shown(capture, summary, find_bound(summary, roofs), roofs)


def _encode(shown: Sequence[Shown], others: Sequence[str]) -> bytes:
    """Return captures as JSON."""
    return _to_json({"captures": list(map(_list_facts, shown)), "other_sessions": list(map(visible, others))})


def _encode_difference(before: Shown, after: Shown) -> bytes:
    """Return two captures, and the operations that differ, as JSON."""
    grown = find_grown(before.summary, after.summary)
    rows = [{**msgspec.to_builtins(operation), "difference_s": operation.difference_s} for operation in grown]
    unlike = list_unlike(before.summary, after.summary)
    return _to_json({"before": _list_facts(before), "after": _list_facts(after), "unlike": unlike, "grown": rows})


def _to_json(content: Mapping[str, Any]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"


def _list_facts(shown: Shown) -> dict[str, Any]:
    capture = shown.capture
    place = {name: getattr(capture, name) for name in ("host", "session", "case", "variant", "platform")}
    return {
        "path": visible(str(capture.path)),
        **{name: visible(text) for name, text in place.items()},
        "is_healthy": shown.summary.is_healthy,
        "summary": shown.summary,
        "bound": shown.bound,
        "roofs": shown.roofs,
        "rates": [{**msgspec.to_builtins(rate), "share": rate.share} for rate in shown.rates],
    }


@contextmanager
def _watch(captures: Sequence[Capture], *, quiet: bool) -> Iterator[Watch | None]:
    """Show a bar on stderr while large captures are read."""
    total = sum(capture.path.stat().st_size for capture in captures)
    console = Console(stderr=True)
    if quiet or total < LARGE_BYTES or not console.is_terminal:
        yield None
        return
    with _Bar(total, console) as bar:
        yield bar.watch


class _Bar(Progress):
    """How many bytes have been read: the capture that is being read counts them, and the bar looks at each refresh."""

    def __init__(self, total: int, console: Console) -> None:
        self._space: Space | None = None
        self._read = 0
        super().__init__(console=console, transient=True)
        self._task = self.add_task("reading captures", total=total)

    def watch(self, space: Space) -> None:
        """Count another capture."""
        self._read += 0 if self._space is None else self._space.size
        self._space = space

    def get_renderables(self) -> Iterator[RenderableType]:
        """Look how far it is, and draw."""
        if self._space is not None:
            self.update(self._task, completed=self._read + self._space.read_bytes)
        yield from super().get_renderables()
