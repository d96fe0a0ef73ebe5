"""Whether changes from run to run agree with the change that was measured between the first and the last directly."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jaxmeter.document import numbers
from jaxmeter.harness.metrics.statistics import Interval, take_logarithm

from ...compare.verdicts import Change


def explain_contradiction(steps: Sequence[Change | None], total: Change) -> str:
    """Return `its steps multiply to 1.9× [1.4, 2.6]` where that and the total exclude each other; empty elsewhere.

    Both are estimates of one ratio from different processes. Of two 95 % confidence intervals that are equally wide,
    0.6 % lie apart by chance, and at most 5 % where one is much wider.

    Args:
      steps: What each run changed since the one before, from the total's earlier run to its later one; None where the
        case was not compared, which leaves nothing to say.
    """
    effects = [None if step is None else step.effect for step in steps]
    chained = _multiply(effects)
    direct = None if total.effect is None else take_logarithm(total.effect)
    if len(steps) < 2 or chained is None or direct is None:
        return ""
    (middle, half), (own_middle, own_half) = chained, direct
    if abs(middle - own_middle) <= half + own_half:
        return ""
    low, estimate, high = (math.exp(value) for value in (middle - half, middle, middle + half))
    product = " ".join(numbers.speedup_with_bounds(Interval(low, estimate, high, len(steps))))
    return f"its steps multiply to {product}"


def _multiply(effects: Sequence[Interval | None]) -> tuple[float, float] | None:
    """Return the logarithm of the product, and half the width of its interval: the variances add up."""
    known = [None if effect is None else take_logarithm(effect) for effect in effects]
    usable = [logarithm for logarithm in known if logarithm is not None]
    if len(usable) < len(known) or not usable:
        return None
    return math.fsum(middle for middle, _ in usable), math.hypot(*(half for _, half in usable))
