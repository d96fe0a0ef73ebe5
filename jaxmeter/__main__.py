"""The command `jaxmeter`, which is `python -m jaxmeter` too."""

import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

# Ctrl-C while the imports run ends the program at once and without words, since nothing has begun. Otherwise NumPy
# would turn it into an ImportError, which ends with 1: a confirmed regression. `cli.ending` undoes this.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # otherwise somebody ignores it
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> NoReturn:
    """Run the command line. A suite may be named by a module of the working folder."""
    with suppress(OSError):  # a working folder may be gone
        sys.path.append(str(Path.cwd()))  # last, so that no folder of the user's takes a library's place
    from jaxmeter.cli.app import run_program

    run_program(sys.argv[1:])


if __name__ == "__main__":
    main()
