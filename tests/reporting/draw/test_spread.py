"""Places of names: apart, inside, and moved as little as possible."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmeter.reporting.draw.rows import spread

PLACES = st.lists(st.floats(0, 100), max_size=8)


def test_names_at_one_place_move_up_and_down_alike() -> None:
    assert spread([50.0, 50.0, 50.0], 10, 0, 100) == [40.0, 50.0, 60.0]


def test_what_is_apart_stays() -> None:
    assert spread([80.0, 10.0, 45.0], 10, 0, 100) == [80.0, 10.0, 45.0]


def test_a_group_at_an_edge_pushes_the_next_name() -> None:
    assert spread([0.0, 2.0, 12.0], 10, 0, 100) == pytest.approx([0.0, 10.0, 20.0])


def test_without_room_gaps_are_kept() -> None:
    assert spread([1.0, 2.0, 3.0], 10, 0, 15) == [-5.0, 5.0, 15.0]


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
