"""The suspects of a comparison, as a file: reporting writes it, and a run that confirms the suspects reads it."""

from __future__ import annotations

from typing import Annotated

import msgspec

CONFIRMING_PROCESSES = 12
"""Fresh processes that confirm a suspect: with these, ratios that scatter by 3 % from process to process have 99 %
intervals of ± 2.7 %."""

CONFIRMING_BLOCKS = 36
"""Blocks of each variant in a confirming process. The number of processes is fixed, so shorter processes give a verdict
earlier: twelve processes of 80 blocks took 12.0 s in all, and of 50 blocks 7.0 s. Ratios scatter by up to 30 % more."""

MOST_CONFIRMING = 30
"""Most processes, for a machine where ratios scatter more. Chosen: compared with twelve, they halve the undetectable
difference, by the t multiplier and the square root. Each takes most of a second."""


class Suspect(msgspec.Struct, frozen=True, kw_only=True):
    """A variant whose time may have changed."""

    case: str
    variant: str


class Suspects(msgspec.Struct, frozen=True, kw_only=True):
    """Variants that a run should time again, interleaved with the programs of an earlier run.

    Args:
      baseline: Id of the earlier run.
      suspects: Each suspect once.
      processes: Number of processes if there is time, at least CONFIRMING_PROCESSES.
    """

    baseline: str
    suspects: tuple[Suspect, ...]
    processes: Annotated[int, msgspec.Meta(ge=CONFIRMING_PROCESSES, le=MOST_CONFIRMING)] = CONFIRMING_PROCESSES
