"""Places of names: apart, inside, and moved as little as possible."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmeter.reporting.draw.rows import spread

PLACES = st.lists(st.floats(0, 100), max_size=8)


@pytest.mark.parametrize(
    ("places", "end", "moved"),
    [
        ([50.0, 50.0, 50.0], 100, [40.0, 50.0, 60.0]),
        ([80.0, 10.0, 45.0], 100, [80.0, 10.0, 45.0]),
        ([0.0, 2.0, 12.0], 100, [0.0, 10.0, 20.0]),
        ([1.0, 2.0, 3.0], 15, [-5.0, 5.0, 15.0]),
    ],
)
def test_names_move_apart(places: list[float], end: float, moved: list[float]) -> None:
    assert spread(places, 10, 0, end) == pytest.approx(moved)


@given(PLACES)
def test_names_are_apart_inside_and_in_their_order(places: list[float]) -> None:
    moved = spread(places, 10, 0, 100)

    pairs = list(itertools.pairwise(sorted(zip(places, moved, strict=True))))
    assert all(b >= a + 10 - 1e-9 for (_, a), (_, b) in pairs) or len(set(places)) < len(places)
    assert all(b >= a + 10 - 1e-9 for a, b in itertools.pairwise(sorted(moved)))
    assert all(-1e-9 <= one <= 100 + 1e-9 for one in moved)


@given(st.lists(st.floats(0, 100), min_size=2, max_size=5), st.data())
def test_no_other_arrangement_moves_names_less(places: list[float], data: st.DataObject) -> None:
    moved = spread(places, 10, 0, 100)
    shifts = data.draw(st.lists(st.floats(-5, 5), min_size=len(places), max_size=len(places)))
    other = [min(max(one + shift, 0.0), 100.0) for one, shift in zip(moved, shifts, strict=True)]
    is_apart = all(b >= a + 10 for a, b in itertools.pairwise(sorted(other)))

    assert not is_apart or _sum_moves(places, moved) <= _sum_moves(places, other) + 1e-6


def _sum_moves(places: list[float], moved: list[float]) -> float:
    return sum((a - b) ** 2 for a, b in zip(places, moved, strict=True))
