"""What changed of a case since an earlier run: both numbers, the verdict, and why."""

from __future__ import annotations

from collections.abc import Sequence

from ...compare.verdicts import Change
from ..changes import TOLD, describe_worst, make_change_table, order_changes
from ..page_model import Part, Section

QUESTION = "What changed since the earlier run?"


def make_changed_section(found: Sequence[Change], earlier: str) -> Section | None:
    """The section; None where the case was not compared."""
    if not found:
        return None
    worst = order_changes(found)
    rest = [one for one in found if one.verdict not in TOLD]
    table = make_change_table([*worst, *rest])
    return Section(
        "changed", "Change", QUESTION, describe_worst(found), (Part(f"Against run {earlier}", tables=(table,)),)
    )
