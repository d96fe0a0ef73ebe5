import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from jaxmeter.harness.notebook.measurement import FEWEST_PASSES, Ratio, compare_passes, find_rank, list_ratios
from tests.harness import raw


def process(**variants):
    """A process of variants by name, each with the time of its passes by number."""
    return raw.process(
        *(
            structs.replace(
                raw.variant(name), blocks=tuple(raw.block(time, pass_number=number) for number, time in times.items())
            )
            for name, times in variants.items()
        )
    )


def test_a_speedup_pairs_the_passes():
    base, fast = {n: 1.0 + n for n in range(8)}, {n: (1.0 + n) / 2 for n in range(1, 7)}

    found = compare_passes(process(base=base, fast=fast), "base", "fast")

    assert found == Ratio(2.0, 2.0, 2.0, 6)


@pytest.mark.parametrize("passes", [1, 5])
def test_too_few_passes_for_an_interval_give_no_speedup(passes):
    times = dict.fromkeys(range(passes), 1.0)

    assert compare_passes(process(base=times, fast=times), "base", "fast") is None
    assert list_ratios(process(base=times, fast=times), "base", "fast") == [1.0] * passes
    assert passes < FEWEST_PASSES


def test_without_a_common_pass_there_is_none():
    assert compare_passes(process(base={0: 2.0}, fast={1: 1.0}), "base", "fast") is None
    assert compare_passes(process(base={0: 2.0}), "base", "fast") is None


@pytest.mark.parametrize(("count", "rank"), [(1, None), (5, None), (6, 0), (9, 1), (20, 5), (80, 30)])
def test_the_bounds_of_a_median_are_those_of_the_sign_test(count, rank):
    # Conover, Practical Nonparametric Statistics, table A3.
    assert find_rank(count) == rank
    assert (rank is None) is (count < FEWEST_PASSES)


@given(st.integers(6, 200))
def test_the_bounds_hold_the_median_with_the_confidence_and_no_narrower_ones_do(count):
    rank = find_rank(count)

    def outside(k):
        return 2 * sum(math.comb(count, j) for j in range(k + 1)) / 2**count

    assert outside(rank) <= 0.05 < outside(rank + 1)


@given(st.lists(st.floats(0.1, 10), min_size=6, max_size=40))
def test_the_interval_holds_the_estimate(times):
    found = compare_passes(
        process(base=dict(enumerate(times)), fast=dict.fromkeys(range(len(times)), 1.0)), "base", "fast"
    )

    assert found.low <= found.estimate <= found.high


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (Ratio(1.0, 1.234, 2.0, 9), "1.23× [1.00, 2.00]"),
        (Ratio(0.001, 0.00417, 0.02, 9), "0.0042× [0.0010, 0.020]"),
        (Ratio(1.0, 1300.0, 2000.0, 9), "1\u202f300× [1.00, 2\u202f000]"),
    ],
)
def test_a_speedup_is_text_with_its_interval(ratio, text):
    assert str(ratio) == text
