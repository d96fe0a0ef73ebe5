"""What the verbs that measure share: options, what they say, and how their errors end."""

from __future__ import annotations

import errno
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Annotated, NoReturn

import typer
from rich.console import Console

from jaxmeter.cli.ending import INCOMPLETE, INTERRUPTED, UNUSABLE
from jaxmeter.cli.request import RunRequest
from jaxmeter.harness.machine.environment import LONGEST_NAME, is_name, name_machine
from jaxmeter.harness.machine.jax_internals import describe_untested
from jaxmeter.harness.machine.own_fault import is_disk_full
from jaxmeter.harness.machine.platforms import list_unused_variables
from jaxmeter.harness.parent.fork_client import ForkServer, ServerError, ServerLostError
from jaxmeter.harness.parent.prepare_run import RunError, UsageError
from jaxmeter.harness.parent.progress import Lines, Live, Watcher, printable
from jaxmeter.harness.plan.cases import SelectionError
from jaxmeter.harness.plan.messages import Description
from jaxmeter.harness.record import Environment

Quick = Annotated[
    bool, typer.Option("--quick", help="Measure the smallest sizes, in 3 to 12 rounds; default budget: 3 minutes.")
]
Full = Annotated[
    bool, typer.Option("--full", help="Measure the largest sizes too, in 3 to 8 rounds; default budget: 2 hours.")
]
Json = Annotated[bool, typer.Option("--json", help="Write JSON to stdout.")]
Runtime = Annotated[
    str | None,
    typer.Option(
        metavar="here|auto|local|container",
        help="Where: in this environment (default), in a container if there is an engine (auto; the default of nox "
        "sessions), in an environment of locked packages, or in a container. All but `here` need a checkout.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]


OF_THE_MACHINE = (
    errno.EAGAIN,
    errno.ENOMEM,
    errno.EMFILE,
    errno.ENFILE,
    errno.EIO,
    errno.ESTALE,
    errno.ETIMEDOUT,
    errno.EINTR,
)
"""Errors of the system that what was asked did not cause, such as too many processes, or a lost mount."""


def end(command: Callable[[], int]) -> NoReturn:
    """End a verb with the exit code of what it does."""
    raise typer.Exit(run_command(command))


def run_command(command: Callable[[], int]) -> int:
    """Runs a command; errors that a person can act on become a line on stderr and an exit code."""
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # otherwise somebody ignores it
        signal.signal(signal.SIGINT, _interrupt)
    try:
        return command()
    except (RunError, ServerLostError) as error:
        complain(str(error))
        return INCOMPLETE
    except (UsageError, SelectionError, ServerError) as error:
        complain(str(error))
        return UNUSABLE
    except OSError as error:
        if is_disk_full(error):
            complain(
                f"the disk is full ({describe_full_disk(error)}); free some room; a run continues with --resume RUN"
            )
            return INCOMPLETE
        complain(explain(error))
        return INCOMPLETE if error.errno in OF_THE_MACHINE else UNUSABLE
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception:  # noqa: BLE001  Python's own exit code would be 1, which means a confirmed regression
        traceback.print_exc()
        complain("this is a fault of jaxmeter; what was measured is kept")
        return INCOMPLETE


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Interrupt, and ignore each later SIGTERM: a caller forwards what its whole group may have received."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def make_watcher(*, quiet: bool, as_json: bool) -> Watcher:
    """Nothing, a live bar on a terminal, or plain lines; on stderr where stdout is for JSON."""
    if quiet:
        return Watcher()
    console = Console(stderr=as_json)
    return Live(console) if console.is_terminal else Lines(sys.stderr if as_json else sys.stdout)


def choose_level(quick: bool, full: bool) -> str:
    """Return the level that two switches choose."""
    if quick and full:
        raise typer.BadParameter("--quick and --full exclude each other; leave one out")
    return "quick" if quick else "full" if full else "default"


def choose_machine(request: RunRequest, environment: Environment) -> str:
    """What the machine is called.

    Raises:
      UsageError: A name that none can have was given.
    """
    if request.machine is None:
        return name_machine(environment)
    if not is_name(request.machine):
        raise UsageError(f"--machine '{request.machine}' is invalid; give 1 to {LONGEST_NAME} printable characters")
    return request.machine.strip()


def complain(text: str) -> None:
    """Say on stderr why a verb cannot go on. A suite's own words must not steer the terminal."""
    lines = [printable(line) for line in text.splitlines()]
    print("error: " + "\n".join(lines), file=sys.stderr)


def warn(texts: Iterable[str]) -> None:
    """Say on stderr what a person should know."""
    for text in texts:
        print(f"warning: {printable(text)}", file=sys.stderr)


def say_what_is_not_used() -> None:
    """Say which variables of the user's have no effect."""
    if names := list_unused_variables(os.environ):
        are = "is" if len(names) == 1 else "are"
        print(
            f"note: {', '.join(names)} {are} not used: what is compiled and what is cached is for the run to decide",
            file=sys.stderr,
        )


def note_untested(environment: Environment) -> tuple[str, ...]:
    """Return and print a note where jax is newer than the newest tested release; else nothing."""
    notes = tuple(filter(None, (describe_untested(environment.packages),)))
    warn(notes)
    return notes


def note_warnings(server: ForkServer, description: Description) -> tuple[str, ...]:
    """What readers of the record must know of suites and processes. Prints what a person must know."""
    notes = list_warnings(description)
    warn(notes)
    if not server.alone:
        return notes
    cost = "each process therefore starts later, and a suite that is edited during the run fails its cases"
    warn([f"every process imports the suites itself: {server.alone}; {cost}"])
    return (*notes, f"every process imported the suites itself: {server.alone}")


def list_warnings(description: Description) -> tuple[str, ...]:
    """Return what the import of suites warned of."""
    return tuple(warning for suite in description.suites for warning in suite.warnings)


def explain(error: OSError) -> str:
    """Return which file cannot be used, and why."""
    return f"{error.filename or 'the run'} cannot be read or written: {error.strerror or error}"


def describe_full_disk(error: OSError) -> str:
    """Return where the disk is full, and what a process said of it."""
    words = "" if error.strerror in (None, os.strerror(error.errno or 0)) else f": {error.strerror}"
    return f"{error.filename or 'while writing'}{words}"
