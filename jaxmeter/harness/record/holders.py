"""Which stage of a run took the most of its budget: kept where a budget ends a run, and said in one place."""

from __future__ import annotations

import msgspec


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """A stage of one variant in one kind of process, and what all such processes took for it.

    Args:
      case: Its name.
      process: check, compilation, timing …
      variant: None in a stage before any variant, such as the inputs.
      stage: trace, compile …
      seconds: Wall time.
    """

    case: str
    process: str
    variant: str | None
    stage: str
    seconds: float

    def __str__(self) -> str:
        """Process, stage, variant and case."""
        of = f"variant '{self.variant}' of {self.case}" if self.variant is not None else self.case
        return f"{of} (process '{self.process}', stage '{self.stage}')"


def describe_used_up(budget_s: float, held: Holder | None) -> str:
    """Say that a budget is used up, and what took the most of it."""
    of = f"; the most of it, {held.seconds:.0f} s, went to {held}" if held is not None else ""
    return f"the budget of {budget_s:g} s is used up{of}"
