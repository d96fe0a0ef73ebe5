"""Which cases a pattern means: `--select` of a run, `--case` of a comparison."""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Iterable, Sequence

from jaxmeter.harness.record.cases import PlannedCase


def match_cases(cases: Sequence[PlannedCase], pattern: str) -> tuple[PlannedCase, ...]:
    """Cases whose suite, workload or whole name matches.

    Args:
      pattern: `*` stands for any text and `?` for one character; brackets mean themselves, as names hold them.
    """
    # fnmatch never goes back over what a star has taken, so many stars cost no more than one.
    expression = re.compile(fnmatch.translate(pattern.replace("[", "[[]")))
    return tuple(case for case in cases if any(map(expression.match, names_of(case))))


def names_of(case: PlannedCase) -> tuple[str, str, str]:
    """The names that a pattern may match: suite, workload and the whole name."""
    return case.suite, case.workload, case.name


def list_nearest(wanted: str, names: Iterable[str], *, most: int = 5) -> list[str]:
    """Return the names that are most like what was wanted, those that contain it first; empty where none is like it."""
    known = list(dict.fromkeys(names))
    containing = sorted((name for name in known if wanted and wanted in name), key=len)
    like = difflib.get_close_matches(wanted, known, n=most, cutoff=0.5)
    return list(dict.fromkeys((*containing, *like)))[:most]


def explain_unknown(kind: str, wanted: str, names: Iterable[str]) -> str:
    """Say that there is no such name: with those most like it, else with all.

    Args:
      kind: What it would name, in the singular.
    """
    known = list(dict.fromkeys(names))
    nearest = list_nearest(wanted, known)
    listed = f"nearest: {', '.join(nearest)}" if nearest else f"there are {', '.join(known)}"
    return f"no {kind} '{wanted}'; {listed}"


def find_nearest(wanted: str, names: Iterable[str], *, cutoff: float = 0.4) -> str | None:
    """The name that is most like what was wanted, which may be a pattern; None where none is like it."""
    found = difflib.get_close_matches(wanted.strip("*?"), list(dict.fromkeys(names)), n=1, cutoff=cutoff)
    return found[0] if found else None
