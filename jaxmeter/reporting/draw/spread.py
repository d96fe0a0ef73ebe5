"""Places of names: pushed apart until none covers another."""

from __future__ import annotations

from collections.abc import Sequence


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return the places, at least `gap` apart, between `low` and `high`, with the least sum of squared moves.

    Neighbours that are too near form a group, which lies around the mean of where its members would be; a group that
    comes too near to the one before is joined to it. Places that have no room together keep their gaps, the last one
    at `high`.
    """
    order = sorted(range(len(places)), key=places.__getitem__)
    groups: list[tuple[float, int]] = []  # (where the first member should be, how many members)
    for index in order:
        wanted, count = places[index], 1
        while groups and _keep_inside(*groups[-1], gap, low, high) + gap * groups[-1][1] > _keep_inside(
            wanted, count, gap, low, high
        ):
            first, members = groups.pop()
            wanted = (first * members + (wanted - gap * members) * count) / (members + count)
            count += members
        groups.append((wanted, count))
    moved = list(places)
    rest = iter(order)
    for wanted, count in groups:
        start = _keep_inside(wanted, count, gap, low, high)
        for number in range(count):
            moved[next(rest)] = start + gap * number
    return moved


def _keep_inside(wanted: float, count: int, gap: float, low: float, high: float) -> float:
    """Return where a group of so many begins, so that all of it is inside; its end has priority."""
    return min(max(wanted, low), high - gap * (count - 1))
