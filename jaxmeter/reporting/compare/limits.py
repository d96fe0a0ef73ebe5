"""The limits of a comparison: the smallest difference that counts, and what is allowed."""

from __future__ import annotations

import re
from pathlib import Path

from .budgets import Budgets, make_defaults, read_budgets

_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%?")
LARGEST_EFFECT = 100.0
"""Per cent. A larger minimum effect would let anything pass."""


class EffectError(Exception):
    """A minimum effect that is none."""


def read_effect(text: str) -> float:
    """Return the share of `3%`, `2.5 %`, `3`.

    Raises:
      EffectError: It is no percentage, 0, or so large that anything would pass.
    """
    match = _PERCENT.fullmatch(text.strip())
    if match is None or not 0 < float(match[1]) <= LARGEST_EFFECT:
        raise EffectError(f"--min-effect '{text}' is not a percentage; write 3% or 2.5%")
    return float(match[1]) / 100


def choose_budgets(path: Path | None, minimum_effect: float) -> Budgets:
    """Return the budgets of a file; without one the allowances of what no budget names."""
    return Budgets(defaults=make_defaults(minimum_effect)) if path is None else read_budgets(path, minimum_effect)
