"""Whether the harness can read what a schedule passes on to it, before a night finds out that it cannot."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from launcher.command_line import read_request
from launcher.nights import BEGINNING, ENDING
from launcher.options import UsageError

VALUED = frozenset({"--budget", "--cores", "--data", "--launches", "--out", "--probe", "--select", "--suites"})
FLAGS = frozenset({"--full", "--json", "--quick", "--quiet"})
"""Options of the harness' `run` that a night takes, with a value and without; a test holds that these are all."""


def check_night(backend: str, words: Sequence[str]) -> None:
    """Checks the names of a night's options; values are the harness' business, and the reporter's.

    Raises:
      UsageError: An option that there is not, one without its value, or a word that belongs to none.
    """
    rest = iter(read_request(backend, words, {}).arguments)
    valued = {*VALUED, *BEGINNING, *ENDING}
    for word in rest:
        name, equals, _ = word.partition("=")
        if name in valued:
            if not equals and next(rest, None) is None:
                raise UsageError(f"{name} needs a value")
        elif not word.startswith("-"):
            raise UsageError(f"{word!r} belongs to no option; write --option VALUE")
        elif word not in FLAGS:
            (nearest,) = difflib.get_close_matches(name, sorted(valued | FLAGS), n=1, cutoff=0)
            raise UsageError(f"{name}: a night has no such option; nearest: {nearest}")
