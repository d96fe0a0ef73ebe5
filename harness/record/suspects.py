"""What a comparison suspects, as a file: reporting writes it, and a run that confirms it reads it."""

from __future__ import annotations

import msgspec


class Suspect(msgspec.Struct, frozen=True, kw_only=True):
    """A variant whose time may have changed."""

    case: str
    variant: str


class Suspects(msgspec.Struct, frozen=True, kw_only=True):
    """Variants that a run should time once more beside the programs of an earlier one.

    Args:
      baseline: Id of the earlier run.
      suspects: Each once.
    """

    baseline: str
    suspects: tuple[Suspect, ...]
