"""`python -m reporting`: see `commands`."""

from typing import NoReturn

from harness.record.endings import end_program

from .commands import app


def main() -> NoReturn:
    """Runs a command; what nobody expected ends with a code that says so."""
    end_program(lambda: app(prog_name="python -m reporting"))


if __name__ == "__main__":
    main()
