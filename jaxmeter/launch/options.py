"""Some options of a command line, whose other arguments are meant for another program."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn


class UsageError(Exception):
    """The command line or the machine cannot be used as asked; the message says what to do."""


class InstallationError(UsageError):
    """The packages of a lock cannot be installed now; the same command can succeed later."""


class Parser(argparse.ArgumentParser):
    """The parser of a session's own options, whose errors end like all others."""

    def __init__(self, program: str, description: str) -> None:
        super().__init__(prog=program, description=description, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Raise a UsageError with the message and the usage in one line."""
        raise UsageError(f"{message}; {' '.join(self.format_usage().split())}")


@dataclass(frozen=True)
class GivenOptions:
    """Options that were given, and the other arguments.

    Args:
      values: By option, in their order; a flag has none.
      rest: In its order.
    """

    values: Mapping[str, Sequence[str]]
    rest: list[str]

    def __contains__(self, name: str) -> bool:
        """Return whether an option was given."""
        return name in self.values

    def get(self, name: str) -> str | None:
        """Return the last value of an option; None where it was not given."""
        return next(reversed(self.values.get(name, ())), None)

    def list_words(self, *names: str) -> list[str]:
        """Return options with their last values, as words of another command line."""
        return [word for name in names if name in self.values for word in write_option(name, *self.values[name][-1:])]


def write_option(name: str, *value: str) -> tuple[str, ...]:
    """Return an option and its value, if any, as words that `read_options` reads: `--name=-VALUE` is one word."""
    return (f"{name}={value[0]}",) if value and value[0].startswith("-") else (name, *value)


def read_options(
    arguments: Sequence[str],
    *names: str,
    flags: Collection[str] = (),
    refused: Mapping[str, str] | None = None,
) -> GivenOptions:
    """Return the options of some names, `--name VALUE` or `--name=VALUE`, and the arguments without them.

    Args:
      flags: Names of options without a value.
      refused: Why an option cannot be given, by name.
    Raises:
      UsageError: An option is refused, or its value is missing.
    """
    for name, why in (refused or {}).items():
        if any(word == name or word.startswith(f"{name}=") for word in arguments):
            raise UsageError(f"{name}: {why}")
    # No abbreviations: the harness knows none, and `--run` must not be read as `--runtime` here.
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    for name in names:
        parser.add_argument(name, dest=name, action="append")
    for flag in flags:
        parser.add_argument(flag, dest=flag, action="store_const", const=())
    try:
        known, rest = parser.parse_known_args(arguments)
    except argparse.ArgumentError as error:
        fault = "takes no value" if error.argument_name in flags else "needs a value"
        raise UsageError(f"{error.argument_name} {fault}") from None
    return GivenOptions({name: values for name, values in vars(known).items() if values is not None}, rest)
