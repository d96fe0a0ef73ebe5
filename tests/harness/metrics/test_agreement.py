import math

import pytest

from jaxmeter.harness.metrics.plausibility import describe_disagreement, find_disagreement
from tests import samples
from tests.harness.metrics.test_derived import timed, variants_of


def case_with(jit_s, *, ratio):
    """Eager code of 2 s, and a jitted variant with a speedup of its own."""
    wobble = (0.99, 1.0, 1.01)
    logs = [math.log(ratio * factor) for factor in wobble]
    return variants_of(
        {
            "f:eager": timed([2.0 * factor for factor in wobble]),
            "f:jit": timed([jit_s * factor for factor in wobble], logs),
            "g:jit": timed([1.0 * factor for factor in wobble], [math.log(2 * factor) for factor in wobble]),
        }
    )


def test_times_whose_quotient_lies_outside_are_both_marked_and_no_others():
    found = case_with(0.5, ratio=2.0)

    reasons = {name: find_disagreement(one, "execution_s") for name, one in found.items()}

    assert reasons["f:eager"] == reasons["f:jit"] != ""
    assert reasons["g:jit"] == ""
    assert all(word in reasons["f:jit"] for word in ("f:eager", "f:jit", "4×"))


@pytest.mark.parametrize("factor", [0.999, 1.001])
def test_the_bounds_of_the_interval_decide(factor):
    bounds = case_with(1.0, ratio=2.0)["f:jit"].read("speedup").interval
    bound = bounds.low if factor < 1 else bounds.high

    inside = case_with(2.0 / (bound / factor), ratio=2.0)
    outside = case_with(2.0 / (bound * factor), ratio=2.0)

    assert find_disagreement(inside["f:jit"], "execution_s") == ""
    assert find_disagreement(outside["f:jit"], "execution_s") != ""


def test_times_whose_quotient_lies_in_the_interval_agree_and_without_either_nothing_disagrees():
    inside = case_with(1.0, ratio=2.0)
    untimed = variants_of({"f:eager": timed((2.0, 2.0, 2.0)), "f:jit": {"numerics": samples.numerics()}})
    single = variants_of({"f:eager": timed((2.0,)), "f:jit": timed((0.5,), (math.log(2),))})

    for found in (inside, untimed, single):
        assert {find_disagreement(one, "execution_s") for one in found.values()} == {""}


@pytest.mark.parametrize(
    ("times_s", "bounds", "disagrees"),
    [
        ((1.0, 0.5), (1.9, 2.1), False),
        ((1.0, 0.25), (1.9, 2.1), True),
        ((None, 0.25), (1.9, 2.1), False),
        ((1.0, None), (1.9, 2.1), False),
        ((1.0, 0.25), (None, None), False),
    ],
)
def test_the_reason_has_both_names_the_quotient_and_the_interval(times_s, bounds, disagrees):
    found = describe_disagreement(("a", "b"), times_s, bounds, "why")

    reason = "the times of a and b give 4×, outside the speedup's interval [1.9, 2.1]; trust the speedup: why"
    assert found.startswith(reason) if disagrees else found == ""
