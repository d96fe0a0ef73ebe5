"""How often something happened, in words."""

from __future__ import annotations

from jaxmeter.harness.metrics.statistics import BOUNDS_CONFIDENCE, bound_rate


def write_rate(count: int, of: int) -> str:
    """`3 of 300 (1.0 %; 95 % bounds 0.2 to 2.9 %)`."""
    if of == 0:
        return "none to count"
    low, high = bound_rate(count, of)
    return (
        f"{count} of {of} ({100 * count / of:.1f} %; {100 * BOUNDS_CONFIDENCE:.0f} % bounds "
        f"{100 * low:.1f} to {100 * high:.1f} %)"
    )
