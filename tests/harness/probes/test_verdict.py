import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmeter.harness.probes.verdict import Leaf, LeafResult, count_digits, judge, judge_leaf
from jaxmeter.harness.record import Correctness

errors = st.floats(0, 1e3)
tolerances = st.sampled_from([0.0, 1e-12, 2e-5, 3e-2])
spreads = st.floats(0, 10)
leaves = st.builds(Leaf, path=st.just(""), error=errors, tolerance=tolerances, is_floating=st.booleans())
judged = st.lists(st.tuples(leaves, spreads), min_size=1, max_size=6)


@given(error=errors, tolerance=tolerances, spread=spreads)
def test_a_leaf_may_deviate_by_its_tolerance_or_four_times_the_draws(error, tolerance, spread):
    found = judge_leaf(Leaf("", error, tolerance), spread)

    assert (found is LeafResult.WRONG) is (error > max(tolerance, 4 * spread))
    assert (found is LeafResult.WITHIN) is (error <= tolerance)


@given(error=errors, tolerance=tolerances, spread=spreads)
def test_where_a_result_of_zeros_would_pass_nothing_was_checked(error, tolerance, spread):
    found = judge_leaf(Leaf("", error, tolerance), spread)
    zeros = judge_leaf(Leaf("", 1.0, tolerance), spread)

    assert (found is not LeafResult.UNKNOWN) or zeros is not LeafResult.WRONG
    assert (found is not LeafResult.ROUNDING) or zeros is LeafResult.WRONG


@given(error=errors, tolerance=tolerances, less=spreads, more=spreads)
def test_larger_draws_make_nothing_wrong(error, tolerance, less, more):
    leaf, (less, more) = Leaf("", error, tolerance), sorted((less, more))

    assert judge_leaf(leaf, less) is LeafResult.WRONG or judge_leaf(leaf, more) is not LeafResult.WRONG


@given(error=errors, spread=spreads)
def test_an_integer_is_right_or_wrong_whatever_the_draws_show(error, spread):
    assert judge_leaf(Leaf("", error, 0.0, is_floating=False), spread) is (
        LeafResult.WRONG if error else LeafResult.WITHIN
    )


@given(judged)
def test_any_wrong_leaf_makes_a_variant_wrong(pairs):
    verdict, each = judge([leaf for leaf, _ in pairs], [spread for _, spread in pairs])

    assert (verdict is Correctness.WRONG) is (LeafResult.WRONG in each)
    assert (verdict is Correctness.RIGHT) is all(found is LeafResult.WITHIN for found in each)


@given(judged)
def test_a_variant_cannot_be_checked_only_if_no_floating_leaf_could(pairs):
    verdict, each = judge([leaf for leaf, _ in pairs], [spread for _, spread in pairs])

    floating = [found for (leaf, _), found in zip(pairs, each, strict=True) if leaf.is_floating]
    known = LeafResult.WRONG not in each and bool(floating)
    assert (verdict is Correctness.CANNOT_BE_CHECKED) is (known and set(floating) == {LeafResult.UNKNOWN})


@given(st.lists(leaves, min_size=1, max_size=6))
def test_without_draws_a_floating_leaf_beyond_its_tolerance_is_unknown_and_never_wrong(given_):
    verdict, each = judge(given_, None)

    for leaf, found in zip(given_, each, strict=True):
        beyond = LeafResult.UNKNOWN if leaf.is_floating else LeafResult.WRONG
        assert found is (beyond if leaf.error > leaf.tolerance else LeafResult.WITHIN)
    assert LeafResult.UNKNOWN not in each or verdict in (Correctness.CANNOT_BE_CHECKED, Correctness.WRONG)


def test_an_error_that_is_no_number_is_beyond_every_tolerance_and_such_draws_leave_nothing_to_check():
    assert judge_leaf(Leaf("", math.nan, 1.0), 0.1) is LeafResult.WRONG
    assert judge_leaf(Leaf("", math.inf, 1.0), 0.1) is LeafResult.WRONG
    assert judge_leaf(Leaf("", math.inf, 1e-5), math.inf) is LeafResult.UNKNOWN


@pytest.mark.parametrize(
    ("spread", "digits"), [(1e-3, 3.0), (0.1, 1.0), (1.0, 0.0), (7.0, 0.0), (math.inf, 0.0), (math.nan, 0.0)]
)
def test_digits_are_those_that_the_draws_leave_alone(spread, digits):
    assert count_digits(spread) == pytest.approx(digits)
