import csv
import math
from collections import defaultdict
from pathlib import Path

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmeter.harness.metrics.moderation import FEWEST_POOLED, fit_plainly, fit_prior
from jaxmeter.harness.metrics.statistics import VariancePrior

GOLDEN = Path(__file__).parent / "golden_limma"

ROOT = 1e-4
"""limma finds the root of d0 / (1 + d0) to 1e-8; of a large d0 that leaves so many digits."""

CLOSE = 1e-6


def read(name):
    """Rows of a golden file by the name of their set, numbers as floats."""
    sets = defaultdict(list)
    with (GOLDEN / name).open() as file:
        for row in csv.DictReader(file):
            sets[row.pop("set")].append({key: float(value) for key, value in row.items()})
    return sets


PRIORS, VARIANTS = read("priors.csv"), read("variants.csv")
every_set = pytest.mark.parametrize("name", PRIORS)


def column(name, key):
    return [row[key] for row in VARIANTS[name]]


def fit(name):
    return fit_prior(column(name, "variance"), column(name, "degrees"))


@every_set
def test_the_plain_prior_is_limmas(name):
    (expected,) = PRIORS[name]

    degrees, variance = fit_plainly(numpy.array(column(name, "variance")), numpy.array(column(name, "degrees")))

    assert degrees == pytest.approx(expected["plain_degrees"], rel=CLOSE)
    assert variance == pytest.approx(expected["plain_variance"], rel=CLOSE)


@every_set
def test_the_robust_prior_is_limmas(name):
    (expected,) = PRIORS[name]

    prior = fit(name)

    assert prior.degrees == pytest.approx(expected["degrees"], rel=ROOT)
    assert prior.variance == pytest.approx(expected["variance"], rel=CLOSE)


@every_set
def test_every_variant_borrows_what_limma_lends_it_and_has_limmas_variance_and_degrees(name):
    prior = fit(name)
    own = zip(column(name, "variance"), column(name, "degrees"), strict=True)

    moderated = [prior.lend(index).moderate(*one) for index, one in enumerate(own)]

    assert prior.by_variant == pytest.approx(column(name, "prior_degrees"), rel=ROOT)
    assert [one[0] for one in moderated] == pytest.approx(column(name, "moderated"), rel=ROOT)
    assert [one[1] for one in moderated] == pytest.approx(column(name, "total_degrees"), rel=ROOT)


def test_two_heaps_scatter_less_than_equal_variances_would_and_the_plain_prior_stands():
    prior = fit("two_heaps")

    assert prior.by_variant == (math.inf,) * 20
    assert prior.variance == 1.25


def test_fewer_than_10_variances_have_no_prior():
    variances = [0.1 * number for number in range(1, FEWEST_POOLED + 1)]

    assert FEWEST_POOLED == 10
    assert fit_prior(variances[:-1], [4.0] * 9) is None
    assert fit_prior(variances, [4.0] * 10) is not None


def test_variances_that_are_not_independent_have_the_degrees_of_those_that_are():
    variances = [0.1 * number for number in range(1, 21)]
    alone, shared = fit_prior(variances, [4.0] * 20), fit_prior(variances, [4.0] * 20, most_degrees=12.0)

    assert (alone.pooled_degrees, shared.pooled_degrees) == (80.0, 12.0)
    assert (alone.degrees, alone.variance, alone.by_variant) == (shared.degrees, shared.variance, shared.by_variant)
    assert fit_prior(variances, [4.0] * 20, most_degrees=100.0) == alone


@pytest.mark.parametrize(("zeros", "fitted"), [(9, True), (10, True), (11, False)])
def test_where_most_variances_are_0_there_is_no_prior(zeros, fitted):
    variances = [0.0] * zeros + [1.0] * (20 - zeros)

    assert (fit_prior(variances, [4.0] * 20) is not None) is fitted


@pytest.mark.parametrize(
    ("variances", "degrees"),
    [
        ([1.0] * 10, [4.0] * 9),
        ([1.0] * 9 + [-1e-9], [4.0] * 10),
        ([1.0] * 9 + [math.nan], [4.0] * 10),
        ([1.0] * 9 + [math.inf], [4.0] * 10),
        ([1.0] * 10, [4.0] * 9 + [0.0]),
        ([1.0] * 10, [4.0] * 9 + [math.inf]),
    ],
)
def test_what_is_no_variance_is_an_error(variances, degrees):
    with pytest.raises(ValueError, match="degrees"):
        fit_prior(variances, degrees)


@given(
    variances=st.lists(st.floats(1e-8, 1e2), min_size=10, max_size=30),
    scale=st.floats(1e-4, 1e4),
)
def test_another_unit_of_the_variances_is_another_unit_of_the_prior_and_nothing_else(variances, scale):
    degrees = [2.0 + index % 3 for index in range(len(variances))]

    here, there = fit_prior(variances, degrees), fit_prior([scale * one for one in variances], degrees)

    assert there.variance == pytest.approx(scale * here.variance, rel=1e-4)
    assert there.by_variant == pytest.approx(here.by_variant, rel=1e-3)


def test_variances_that_rounding_has_set_apart_borrow_the_same():
    variances = [1.0, 100.0, 1.0, 1.0, math.nextafter(100.0, 0.0), *[1.0] * 5]

    prior = fit_prior(variances, [4.0] * 10)

    assert prior.by_variant[1] == prior.by_variant[4] < prior.by_variant[0]


@pytest.mark.parametrize(("smallest", "told"), [(2.3e-309, False), (0.99e-200, False), (1.01e-200, True)])
def test_variances_of_which_half_are_as_good_as_zero_have_no_scale(smallest, told):
    prior = fit_prior([0.0] * 5 + [smallest] + [1.0] * 5, [2.0] * 11)

    assert (prior is not None) is told


@given(variances=st.lists(st.floats(0, 1e6), min_size=10, max_size=30))
def test_the_larger_of_two_variances_borrows_no_more_than_the_other(variances):
    prior = fit_prior(variances, [4.0] * len(variances))
    if prior is None:
        return
    ordered = [degrees for _, degrees in sorted(zip(variances, prior.by_variant, strict=True))]

    # Equal variances borrow the same, in whatever order.
    assert ordered == pytest.approx(sorted(ordered, reverse=True), rel=1e-9)
    assert max(ordered) <= prior.degrees


def test_a_variance_beyond_every_tail_borrows_nothing():
    variances = [0.9, 0.92, 0.94, 0.96, 0.98, 1.0, 1.02, 1.04, 1.06, 1.08, 1e7]

    prior = fit_prior(variances, [8.0] * 11)

    assert prior.by_variant[-1] == 0.0
    assert prior.lend(10).moderate(1e7, 8.0) == (1e7, 8.0)


def test_a_moderated_variance_lies_between_its_own_and_the_borrowed_by_degrees_that_are_no_more_than_those_of_all():
    assert VariancePrior(4.0, 6.0, most_degrees=100.0).moderate(1.0, 2.0) == (3.25, 8.0)
    assert VariancePrior(4.0, 6.0, most_degrees=7.0).moderate(1.0, 2.0) == (3.25, 7.0)
    assert VariancePrior(4.0, math.inf, most_degrees=70.0).moderate(1.0, 2.0) == (4.0, 70.0)
