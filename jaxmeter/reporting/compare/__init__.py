"""Sets runs, programs and numbers side by side. Knows no page."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    """Something that is recorded of A and of B and is not the same; None where a side has none."""

    what: str
    a: str | None
    b: str | None
