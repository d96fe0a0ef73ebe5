"""Changes from run to run, held against the change that was measured directly."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmeter.harness.metrics.statistics import Interval
from jaxmeter.reporting.compare.verdicts import TIME, Change, Verdict
from jaxmeter.reporting.view.sections.releases import explain_contradiction

RATIOS = st.floats(0.1, 10)


def make_change(ratio: float, error: float = 0.05) -> Change:
    """A change with an interval of so much to each side, on the logarithm."""
    return make_finding(Verdict.SAME, Interval(ratio / math.exp(error), ratio, ratio * math.exp(error), 5))


def make_finding(verdict: Verdict, effect: Interval | None) -> Change:
    return Change(suite="suite", case="f", platform="cpu", variant="f:jit", metric=TIME, verdict=verdict, effect=effect)


@given(st.lists(RATIOS, min_size=2, max_size=20))
def test_a_total_that_is_the_product_contradicts_nothing(ratios: list[float]) -> None:
    assert explain_contradiction(list(map(make_change, ratios)), make_change(math.prod(ratios))) == ""


@given(st.lists(RATIOS, min_size=2, max_size=20), st.sampled_from([1, -1]))
def test_intervals_that_just_touch_are_no_contradiction_and_those_apart_are(ratios: list[float], side: int) -> None:
    reach = 0.05 * math.sqrt(len(ratios)) + 0.05
    steps = list(map(make_change, ratios))

    assert explain_contradiction(steps, make_change(math.prod(ratios) * math.exp(0.99 * side * reach))) == ""
    assert explain_contradiction(steps, make_change(math.prod(ratios) * math.exp(1.01 * side * reach)))


def test_the_product_of_the_steps_is_told_with_its_interval() -> None:
    told = explain_contradiction([make_change(2.0, 0.03), make_change(3.0, 0.04)], make_change(1.0))

    assert told == "its steps multiply to 6.0× [5.7, 6.3]"


UNBOUNDED = make_finding(Verdict.SAME, Interval(None, 1.0, None, 1))


@pytest.mark.parametrize(
    ("steps", "total"),
    [
        ([], make_change(1.0)),
        ([make_change(5.0)], make_change(1.0)),
        ([make_change(5.0), None], make_change(1.0)),
        ([make_change(5.0), make_finding(Verdict.FAILED, None)], make_change(1.0)),
        ([make_change(5.0), UNBOUNDED], make_change(1.0)),
        ([make_change(2.0), make_change(2.0)], UNBOUNDED),
    ],
    ids=["none", "the total itself", "not compared", "failed", "a step without an interval", "a total without one"],
)
def test_without_all_steps_and_their_intervals_nothing_is_said(steps: list[Change | None], total: Change) -> None:
    assert explain_contradiction(steps, total) == ""
