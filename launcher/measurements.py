"""Whether the harness can read what is passed on to it, before an hour or a night has gone by."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence

from launcher.command_line import read_request
from launcher.nights import BEGINNING, ENDING
from launcher.options import UsageError, take_option

VALUED = frozenset({"--budget", "--cores", "--data", "--processes", "--out", "--probe", "--select", "--suites"})
FLAGS = frozenset({"--full", "--json", "--quick", "--quiet"})
"""Options of the harness' `run` that a night takes, with a value and without; a test holds that these are all."""

RUNTIME = "--runtime"
LOCAL = "local"


def check_night(backend: str, words: Sequence[str]) -> None:
    """Checks the names of a night's options; values are the harness' business, and the reporter's.

    Raises:
      UsageError: An option that there is not, one without its value, or a word that belongs to none.
    """
    _check(read_request(backend, words, {}).arguments, {*VALUED, *BEGINNING, *ENDING}, "a night")


def check_images(backend: str, words: Sequence[str], what: str) -> None:
    """Checks the names of options of measurements in containers.

    Raises:
      UsageError: As `check_night`.
    """
    _check(read_request(backend, words, {}).arguments, {*VALUED, "--machine"}, what)


def check_packages(words: Sequence[str], what: str) -> list[str]:
    """Checks the names of options of measurements in environments of packages; those for the harness.

    Args:
      what: What measures: "an upgrade".

    Raises:
      UsageError: As `check_night`; or containers are asked for.
    """
    runtime, rest = take_option(words, RUNTIME)
    if runtime not in (None, LOCAL):
        raise UsageError(f"{RUNTIME} {runtime}: packages are measured in virtual environments; leave it out")
    _check(rest, {*VALUED, "--machine"}, what)
    return rest


def _check(words: Sequence[str], valued: Collection[str], what: str) -> None:
    rest = iter(words)
    for word in rest:
        name, equals, _ = word.partition("=")
        if name in valued:
            if not equals and next(rest, None) is None:
                raise UsageError(f"{name} needs a value")
        elif not word.startswith("-"):
            raise UsageError(f"{word!r} belongs to no option; write --option VALUE")
        elif name in FLAGS and equals:
            raise UsageError(f"{name} takes no value")
        elif word not in FLAGS:
            (nearest,) = difflib.get_close_matches(name, sorted({*valued, *FLAGS}), n=1, cutoff=0)
            raise UsageError(f"{name}: {what} has no such option; nearest: {nearest}")
