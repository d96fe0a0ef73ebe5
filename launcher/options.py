"""Reading single options from a command line that is meant for another program."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence


class UsageError(Exception):
    """The command line or the machine cannot be used as asked; the message says what to do."""


def take_option(arguments: Sequence[str], name: str) -> tuple[str | None, list[str]]:
    """The last value of an option, `--name VALUE` or `--name=VALUE`, and the arguments without it.

    Raises:
      UsageError: The option is there and its value is not.
    """
    values, rest = take_options(arguments, name)
    return (values[-1] if values else None), rest


def take_options(arguments: Sequence[str], name: str) -> tuple[list[str], list[str]]:
    """All values of an option that may be given again and again, and the arguments without it.

    Raises:
      UsageError: The option is there and its value is not.
    """
    # No abbreviations: the harness knows none, and `--run` must not be read as `--runtime` here.
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument(name, dest="values", action="append", default=[])
    try:
        known, rest = parser.parse_known_args(arguments)
    except argparse.ArgumentError:
        raise UsageError(f"{name} needs a value") from None
    return known.values, rest


def refuse(arguments: Sequence[str], forbidden: Mapping[str, str]) -> None:
    """Checks that none of some options is given.

    Args:
      forbidden: Why, by option.
    Raises:
      UsageError: One is.
    """
    for name, why in forbidden.items():
        if any(word == name or word.startswith(f"{name}=") for word in arguments):
            raise UsageError(f"{name}: {why}")


def take_flag(arguments: Sequence[str], name: str) -> tuple[bool, list[str]]:
    """Whether a flag is there, and the arguments without it."""
    return name in arguments, [argument for argument in arguments if argument != name]
