"""What a comparison suspects, as a file: reporting writes it, and a run that confirms it reads it."""

from __future__ import annotations

from typing import Annotated

import msgspec

CONFIRMING_PROCESSES = 12
"""Fresh processes that confirm a suspect: with as many, ratios that scatter by 3 % from process to process are known to
2.7 % at 99 %."""

CONFIRMING_BLOCKS = 50
"""Of each variant in one of them. As their number is given, shorter ones make a verdict quicker: twelve of 80
blocks took 12.0 s with all else. Ratios scatter by up to a quarter more (what blocks do: plan/settings.py)."""

MOST_CONFIRMING = 30
"""On a machine where ratios scatter more. Chosen: as many as halve what twelve cannot tell, by t and root; each takes
most of a second."""


class Suspect(msgspec.Struct, frozen=True, kw_only=True):
    """A variant whose time may have changed."""

    case: str
    variant: str


class Suspects(msgspec.Struct, frozen=True, kw_only=True):
    """Variants that a run should time once more beside the programs of an earlier one.

    Args:
      baseline: Id of the earlier run.
      suspects: Each once.
      processes: By how many, if the time is there; by CONFIRMING_PROCESSES anyway.
    """

    baseline: str
    suspects: tuple[Suspect, ...]
    processes: Annotated[int, msgspec.Meta(ge=CONFIRMING_PROCESSES, le=MOST_CONFIRMING)] = CONFIRMING_PROCESSES
