"""What a comparison says of a variant: decided leaf by leaf, from errors, tolerances and the draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from jaxmeter.harness.record import Correctness

FACTOR = 4.0
"""An error up to so many times the largest deviation in the draws is rounding: chosen by experiments, which
`python -m benchmarks.correctness` repeats."""


class LeafResult(StrEnum):
    """What one leaf is."""

    WITHIN = "within its tolerance"
    ROUNDING = "within the problem's conditioning"
    UNKNOWN = "cannot be checked"
    WRONG = "wrong"


@dataclass(frozen=True)
class Leaf:
    """One leaf that was compared.

    Args:
      error: Relative to the largest entry of what is wanted.
      tolerance: What its formats allow.
      is_floating: Whether it can be rounded at all.
    """

    path: str
    error: float
    tolerance: float
    is_floating: bool = True

    @property
    def is_beyond(self) -> bool:
        """Whether its formats alone do not explain the error; also where the error is no number."""
        return not self.error <= self.tolerance


def judge_leaf(leaf: Leaf, spread: float | None) -> LeafResult:
    """What a leaf is, given the largest deviation in the draws; None where the draws would take too long."""
    if not leaf.is_beyond:
        return LeafResult.WITHIN
    if not leaf.is_floating:
        return LeafResult.WRONG
    if spread is None:
        return LeafResult.UNKNOWN
    allowed = FACTOR * spread
    if not (leaf.error <= allowed):
        return LeafResult.WRONG
    # Zeros have an error of 1: where they would pass, nothing was checked.
    return LeafResult.ROUNDING if allowed < 1 else LeafResult.UNKNOWN


def judge(leaves: Sequence[Leaf], spreads: Sequence[float] | None) -> tuple[Correctness, tuple[LeafResult, ...]]:
    """What the variant is, and what each leaf is.

    Args:
      spreads: The largest deviation in the draws by leaf; None where the draws would take too long.
    """
    each = tuple(judge_leaf(leaf, None if spreads is None else spreads[i]) for i, leaf in enumerate(leaves))
    if LeafResult.WRONG in each:
        return Correctness.WRONG, each
    if spreads is None and LeafResult.UNKNOWN in each:
        return Correctness.CANNOT_BE_CHECKED, each  # such an output may be off by anything
    floating = [result for leaf, result in zip(leaves, each, strict=True) if leaf.is_floating]
    if floating and all(result is LeafResult.UNKNOWN for result in floating):
        return Correctness.CANNOT_BE_CHECKED, each
    is_right = all(result is LeafResult.WITHIN for result in each)
    return Correctness.RIGHT if is_right else Correctness.RIGHT_WITHIN_CONDITIONING, each


def count_digits(spread: float) -> float:
    """How many decimal digits of a result the draws leave alone; none where they reach its size."""
    if math.isnan(spread) or spread >= 1:
        return 0.0
    return -math.log10(spread) if spread > 0 else math.inf
