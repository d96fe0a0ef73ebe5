"""`python -m reporting`: see `commands`."""

import sys
import traceback

from .commands import app

UNEXPECTED = 3
"""Exit code: Python's own would be 1, which means a confirmed regression."""


def main() -> None:
    """Runs a command; what nobody expected ends with a code that says so."""
    try:
        app(prog_name="python -m reporting")
    except Exception:  # noqa: BLE001  a command that fails in a way of its own says why, and exits
        traceback.print_exc()
        sys.exit(UNEXPECTED)


if __name__ == "__main__":
    main()
