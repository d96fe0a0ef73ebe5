"""Places of names: pushed apart until none covers another."""

from __future__ import annotations

import itertools
from collections.abc import Sequence


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return the places, moved as little as possible, at least `gap` apart and between `low` and `high`."""
    order = sorted(range(len(places)), key=places.__getitem__)
    moved = [min(max(place, low), high) for place in places]
    for first, second in itertools.pairwise(order):  # downwards
        moved[second] = max(moved[second], moved[first] + gap)
    if order and moved[order[-1]] > high:
        moved[order[-1]] = high
        for second, first in itertools.pairwise(reversed(order)):  # and back where there is no room
            moved[first] = min(moved[first], moved[second] - gap)
    return moved
