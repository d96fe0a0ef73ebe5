"""Exit codes, and how the program ends: with 1 only where a verb decides so, since 1 means a confirmed regression."""

from __future__ import annotations

import os
import select
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

FINE, INTERRUPTED = 0, 130

UNUSABLE = 2
"""Usage; or nothing could be read, or nothing written."""

INCOMPLETE = 3
"""A case failed, is wrong or unknown, timed out or was lost; or the machine or a store is in the way, and the same
command can succeed later."""

UNEXPECTED = 3
"""Python's own would be 1, and so would be that of Typer and Rich where nobody reads what they print."""

CUT_SHORT = 141
"""What a shell shows of a program that SIGPIPE ended: nobody reads its output any more, as after `| head`. It is not 0,
since a verdict may be lost with the output."""


def raise_interruptions() -> None:
    """Have Ctrl-C be an exception again, which it is not while imports run: see `jaxmeter.__main__`."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def end_program(program: Callable[[], object]) -> NoReturn:
    """Run a program that exits by itself; where it does not get so far, say why and exit with UNEXPECTED.

    Where nobody reads its output any more, exit with CUT_SHORT and say nothing, as coreutils do.
    """
    code, words = UNEXPECTED, ""
    output = _copy_output()
    try:
        try:
            program()
        except SystemExit as ended:
            if isinstance(ended.__context__, BrokenPipeError):
                raise ended.__context__ from None
            raise
        finally:
            print(end="", flush=True)
    except BrokenPipeError as error:
        if output is None or _is_read(output):  # another pipe, as to a process that died
            words = f"{traceback.format_exc()}error: this is a fault of jaxmeter: {error.strerror}"
        else:
            code = CUT_SHORT
    except ModuleNotFoundError as error:
        from jaxmeter.harness.record.wording import describe_missing

        if missing := describe_missing(error):
            code, words = UNUSABLE, f"error: {missing}"
        else:
            words = f"{traceback.format_exc()}error: this is a fault of jaxmeter"
    except OSError as error:
        from jaxmeter.harness.record.wording import visible  # half a second, which `--version` need not wait for

        what = f"{visible(str(error.filename))} cannot be used" if error.filename else "the output cannot be printed"
        words = f"error: {what}: {error.strerror or error}"
    except Exception:  # noqa: BLE001  a program that fails in a way of its own says why, and exits
        words = f"{traceback.format_exc()}error: this is a fault of jaxmeter"
    with suppress(OSError):  # stderr may be as full
        print(words, end="\n" if words else "", file=sys.stderr, flush=True)
    for stream in (1, 2):  # Python would try to print the rest once more, and end with 120
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    sys.exit(code)


def _copy_output() -> int | None:
    """Return another descriptor of stdout, since Rich replaces the first where nobody reads it; None without any."""
    try:
        return os.dup(1)
    except OSError:
        return None


def _is_read(pipe: int) -> bool:
    """Return whether anybody can read what is written to a pipe."""
    poll = select.poll()
    poll.register(pipe, 0)
    return not any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))
