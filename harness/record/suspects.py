"""What a comparison suspects, as a file: reporting writes it, and a run that confirms it reads it."""

from __future__ import annotations

import msgspec

from harness.record.cases import PlannedCase


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


def is_same_problem(before: PlannedCase, after: PlannedCase) -> bool:
    """Whether two cases of one name are of the same inputs, reference and cost, on as many devices, in one setting."""
    return (before.definition, before.devices, before.config) == (after.definition, after.devices, after.config)
