"""Intervals against a bitmap: an instant of a small clock is inside or outside."""

import itertools
from fractions import Fraction

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmeter.harness.traces.columns import NONE, clip, covered, join, measure, share_equally, subtract, unite

LATEST = 40
PAIRS = st.lists(st.tuples(st.integers(0, LATEST), st.integers(0, LATEST)), max_size=12)
ORDERED = PAIRS.map(lambda pairs: [(min(pair), max(pair)) for pair in pairs])


def intervals(pairs):
    starts, ends = zip(*pairs, strict=True) if pairs else ((), ())
    return numpy.array(starts, numpy.int64), numpy.array(ends, numpy.int64)


def instants(pairs):
    """All instants that any of some intervals has; one that ends before it begins has none."""
    return {instant for start, end in pairs for instant in range(start, end)}


def pairs_of(found):
    return list(zip(*(times.tolist() for times in found), strict=True))


@given(PAIRS)
def test_a_union_has_the_same_instants_sorted_and_apart(pairs):
    united = pairs_of(unite(intervals(pairs)))

    assert instants(united) == instants(pairs)
    assert all(start < end for start, end in united)
    assert all(before[1] < after[0] for before, after in itertools.pairwise(united))
    assert measure(unite(intervals(pairs))) == len(instants(pairs))


@given(ORDERED, ORDERED)
def test_a_difference_has_the_instants_of_one_alone(first, second):
    found = subtract(unite(intervals(first)), unite(intervals(second)))

    assert instants(pairs_of(found)) == instants(first) - instants(second)
    assert pairs_of(unite(found)) == pairs_of(found)


@given(ORDERED, st.integers(0, LATEST), st.integers(0, LATEST))
def test_what_is_clipped_lies_in_the_window(pairs, low, high):
    assert instants(pairs_of(clip(intervals(pairs), low, high))) == instants(pairs) & set(range(low, high))


@given(ORDERED, ORDERED)
def test_windows_are_covered_by_as_many_instants_as_both_have(pairs, windows):
    found = covered(unite(intervals(pairs)), *intervals(windows))

    assert found.tolist() == [len(instants(pairs) & instants([window])) for window in windows]


@given(ORDERED, ORDERED, ORDERED)
def test_a_joint_list_has_all_instants(first, second, third):
    joint = join(*map(intervals, (first, second, third)))

    assert pairs_of(joint) == [*first, *second, *third]


@given(ORDERED)
def test_shares_divide_each_instant_equally(pairs):
    active = {instant: sum(start <= instant < end for start, end in pairs) for instant in instants(pairs)}
    expected = [sum(Fraction(1, active[instant]) for instant in range(start, end)) for start, end in pairs]

    assert share_equally(intervals(pairs)).tolist() == pytest.approx([float(share) for share in expected])


def test_no_intervals_have_no_length_no_shares_and_cover_nothing():
    assert measure(unite(NONE)) == 0
    assert share_equally(NONE).tolist() == []
    assert covered(NONE, *intervals([(0, 5)])).tolist() == [0]
    assert pairs_of(subtract(NONE, intervals([(0, 5)]))) == []
    assert pairs_of(subtract(intervals([(0, 5)]), NONE)) == [(0, 5)]
    assert share_equally(intervals([(3, 3), (3, 3)])).tolist() == [0, 0]


def test_times_of_days_in_picoseconds_add_up_exactly():
    day = 86_400 * 10**12
    pairs = [(0, 30 * day), (10 * day, 50 * day), (50 * day + 1, 50 * day + 2)]

    assert measure(unite(intervals(pairs))) == 50 * day + 1
    assert measure(subtract(unite(intervals(pairs)), intervals([(1, 2)]))) == 50 * day
