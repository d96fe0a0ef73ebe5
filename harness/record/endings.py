"""How our programs end: never with 1 where nothing else has decided it, since that means a confirmed regression."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from harness.record.wording import visible

UNEXPECTED = 3
"""Exit code: Python's own would be 1, and so would be that of Typer and Rich where nobody reads what they print."""


def end_program(program: Callable[[], object]) -> NoReturn:
    """Runs a program that exits by itself; where it does not get so far, it says why and exits with UNEXPECTED.

    From here on Ctrl-C is an exception again, see `harness.interruption`.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        try:
            program()
        except SystemExit as ended:
            if isinstance(ended.__context__, BrokenPipeError):
                raise ended.__context__ from None
            raise
        finally:
            print(end="", flush=True)
    except OSError as error:
        what = f"{visible(str(error.filename))} cannot be used" if error.filename else "the output cannot be printed"
        words = f"error: {what}: {error.strerror or error}"
    except Exception:  # noqa: BLE001  a program that fails in a way of its own says why, and exits
        words = f"{traceback.format_exc()}error: this is a fault of jaxmeter"
    with suppress(OSError):  # stderr may be as full
        print(words, file=sys.stderr, flush=True)
    for stream in (1, 2):  # Python would try to print the rest once more, and end with 120
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    sys.exit(UNEXPECTED)
