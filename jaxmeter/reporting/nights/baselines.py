"""Which earlier runs a night is compared with: the last good one, and a pinned one, against many small steps."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from .verdicts import Known, Verdict

LAST = "last"
PINNED = "pinned"
MOST_NAMED = 3
TITLES = {LAST: "last good", PINNED: "pinned"}


@dataclass(frozen=True)
class Chosen:
    """Ids of the earlier runs, by role; a run with both roles stands under the first.

    Args:
      others: Why nothing is compared though there are nightly runs: of another machine, or of other options.
    """

    last: str | None = None
    pinned: str | None = None
    others: str = ""


def choose(
    known: Known, *, backend: str, machine: str, measuring: Sequence[str], without: Collection[str] = ()
) -> Chosen:
    """The newest good nightly run of the same machine and options; and the last accepted one, else the first good one.

    A night is good if it passed, nothing of it is missing and the machine was not too busy, or if a person accepted it.

    Args:
      without: Runs that the store does not have any more.
    """
    of_machine = [one for one in known.verdicts if (one.backend, one.machine) == (backend, machine)]
    same = [one for one in of_machine if one.measuring == tuple(measuring)]
    good = [one.run for one in same if (one.good or one.run in known.accepted) and one.run not in without]
    if not good:
        return Chosen(others=_explain(known.verdicts, of_machine, same, machine))
    accepted = [run for run in known.accepted if run in good]
    last, pinned = good[-1], accepted[-1] if accepted else good[0]
    return Chosen(last, None if pinned == last else pinned)


def _explain(verdicts: Sequence[Verdict], of_machine: Sequence[Verdict], same: Sequence[Verdict], machine: str) -> str:
    if same:
        return f"none of the {len(same)} nightly runs before was good"
    if of_machine:
        return "the nightly runs before had other options"
    if verdicts:
        names = ", ".join(f"'{name}'" for name in sorted({one.machine for one in verdicts})[:MOST_NAMED])
        return f"the nightly runs before are of other machines ({names}; this is '{machine}')"
    return ""
