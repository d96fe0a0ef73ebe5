"""Reading single options from a command line that is meant for another program."""

from __future__ import annotations

import argparse
from collections.abc import Sequence


class UsageError(Exception):
    """The command line cannot be used; the message says what is allowed and what to do."""


def take_option(arguments: Sequence[str], name: str) -> tuple[str | None, list[str]]:
    """The last value of an option, `--name VALUE` or `--name=VALUE`, and the arguments without it.

    Raises:
      UsageError: The option is there and its value is not.
    """
    # No abbreviations: the harness knows none, and `--run` must not be read as `--runtime` here.
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument(name, dest="value")
    try:
        known, rest = parser.parse_known_args(arguments)
    except argparse.ArgumentError:
        raise UsageError(f"{name} needs a value") from None
    return known.value, rest
