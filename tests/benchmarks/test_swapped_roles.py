"""What two orders of two environments tell of releases and of roles."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.swapped_roles import separate
from jaxmeter.harness.metrics.statistics import Interval

RATIOS = st.floats(0.01, 100.0)


def interval(estimate, width):
    return Interval(estimate / width, estimate, estimate * width, 3)


@given(RATIOS, RATIOS)
def test_release_and_role_are_what_both_orders_were_made_of(release, role):
    roles = separate(interval(release * role, 1.1), interval(role / release, 1.1))

    assert roles.release[1] == pytest.approx(release)
    assert roles.role[1] == pytest.approx(role)
    assert roles.role[2] / roles.role[1] == pytest.approx(1.1 ** math.sqrt(0.5))


@pytest.mark.parametrize(("role", "matters"), [(1.0, False), (1.05, False), (1.1, True), (0.9, True)])
def test_a_role_matters_where_its_interval_excludes_one(role, matters):
    assert separate(interval(2.0 * role, 1.1), interval(0.5 * role, 1.1)).matters is matters


def test_a_ratio_without_an_interval_tells_nothing():
    assert separate(Interval(None, 1.0, None, 1), interval(1.0, 1.1)) is None
