from itertools import pairwise

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxmeter.reporting.history import FEWEST, FEWEST_BESIDE, find_splits

SEEDS = st.integers(min_value=0, max_value=10_000)
NOISE = 0.01


def noisy(seed: int, *levels: tuple[int, float]) -> list[float]:
    """So many values around each level, with a deviation of 1 %."""
    random = numpy.random.default_rng(seed)
    return [float(level * numpy.exp(random.normal(0, NOISE))) for count, level in levels for _ in range(count)]


@pytest.mark.parametrize(
    ("values", "splits"),
    [
        (noisy(1, (20, 1.0), (20, 1.2)), (20,)),
        (noisy(2, (20, 1.0), (20, 0.8)), (20,)),
        (noisy(3, (20, 1.0), (20, 1.3), (20, 1.0), (20, 1.1)), (20, 40, 60)),
        (noisy(4, (25, 1.0), (10, 1.2), (25, 1.0)), (25, 35)),
        ([1.0] * 40, ()),
        ([1.0] * 10 + [1.1] * 10, (10,)),
        ([1.0] * (FEWEST // 2) + [2.0] * (FEWEST // 2), (FEWEST // 2,)),
    ],
    ids=["up", "down", "several", "there and back", "all equal", "exact values", "as few as can be"],
)
def test_a_step_is_where_the_new_level_begins(values, splits):
    assert find_splits(values) == splits


@pytest.mark.parametrize(("effect", "expected"), [(0.03, (20,)), (0.05, ())])
def test_a_step_below_the_minimum_effect_is_none(effect, expected):
    assert find_splits(noisy(5, (20, 1.0), (20, 1.04)), effect) == expected


@pytest.mark.parametrize("count", range(2 * FEWEST_BESIDE, FEWEST))
def test_too_few_values_have_no_step(count):
    assert find_splits([1.0] * (count // 2) + [2.0] * (count - count // 2)) == ()


@pytest.mark.parametrize("at", [0, 7, 19, 38, 39])
def test_an_outlier_is_no_step(at):
    values = noisy(6, (40, 1.0))
    values[at] *= 3

    assert find_splits(values) == ()


def test_an_outlier_on_either_side_does_not_hide_a_step():
    values = noisy(7, (20, 1.0), (20, 1.1))
    values[5] *= 3
    values[30] /= 3

    assert find_splits(values) == (20,)


@given(seed=SEEDS, factor=st.floats(min_value=1e-9, max_value=1e9))
@settings(max_examples=settings.default.max_examples * 3 // 10, deadline=None)
def test_the_unit_does_not_matter(seed, factor):
    values = noisy(seed, (15, 1.0), (15, 1.05))

    assert find_splits(values) == find_splits([value * factor for value in values])


@given(seed=SEEDS, at=st.integers(min_value=8, max_value=32))
@settings(max_examples=settings.default.max_examples * 3 // 10, deadline=None)
def test_a_large_step_is_found_within_a_run_of_where_it_is(seed, at):
    (found,) = find_splits(noisy(seed, (at, 1.0), (40 - at, 1.2)))

    assert abs(found - at) <= 1


@given(values=st.lists(st.floats(min_value=1e-9, max_value=1e9), max_size=60))
@settings(max_examples=settings.default.max_examples * 3 // 5, deadline=None)
def test_steps_are_in_order_and_have_values_enough_on_both_sides(values):
    found = find_splits(values)

    edges = [0, *found, len(values)]
    assert not found or min(after - before for before, after in pairwise(edges)) >= FEWEST_BESIDE
