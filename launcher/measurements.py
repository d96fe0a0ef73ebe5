"""Whether the harness can read what is passed on to it, before an hour or a night has gone by."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from launcher.command_line import read_request
from launcher.options import UsageError, read_options

VALUED = ("--budget", "--cores", "--data", "--out", "--probe", "--processes", "--select", "--suites")
FLAGS = ("--full", "--json", "--quick", "--quiet")
"""Options of the harness' `run` for sessions of several runs; a test holds that, with reasons, these are all."""

RUNTIME = "--runtime"
LOCAL = "local"


def check_measuring(
    words: Sequence[str], what: str, also: Sequence[str] = (), reasons: Mapping[str, str] | None = None
) -> None:
    """Check the names of a measurement's options; values are the harness' business.

    Args:
      what: What measures: "an upgrade".
      also: Other options with a value.
      reasons: Why an option is not taken, by name.
    Raises:
      UsageError: There is no such option, its value is missing, or a word belongs to none.
    """
    names = (*VALUED, *also)
    for word in read_options(words, *names, flags=FLAGS, refused=reasons).rest:
        if not word.startswith("-"):
            raise UsageError(f"{word!r} belongs to no option; write --option VALUE")
        name = word.partition("=")[0]
        known = sorted((*names, *FLAGS))
        nearest = difflib.get_close_matches(name, known, n=1)
        hint = f"nearest: {nearest[0]}" if nearest else f"options: {', '.join(known)}"
        raise UsageError(f"{name}: {what} has no such option; {hint}")


def check_images(backend: str, words: Sequence[str], what: str) -> None:
    """Checks the names of options of measurements in containers.

    Raises:
      UsageError: As `check_measuring`.
    """
    check_measuring(read_request(backend, words, {}).arguments, what, ("--machine",))


def check_packages(words: Sequence[str], what: str) -> list[str]:
    """Checks the names of options of measurements in environments of packages; those for the harness.

    Args:
      what: What measures: "an upgrade".

    Raises:
      UsageError: As `check_measuring`; or containers are asked for.
    """
    given = read_options(words, RUNTIME)
    if given.get(RUNTIME) not in (None, LOCAL):
        raise UsageError(f"{RUNTIME} {given.get(RUNTIME)}: packages are measured in virtual environments; leave it out")
    check_measuring(given.rest, what, ("--machine",))
    return given.rest
