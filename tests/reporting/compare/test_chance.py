import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from jaxmeter.harness.metrics.metric import Reading
from jaxmeter.harness.metrics.statistics import CONFIDENCE, FEWEST_PROCESSES
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.reporting.compare.ratios import LEAST_CHANCE, compare_unpaired, find_chance_unpaired
from tests.reporting.compare.changed import BEFORE, compare, plain, replayed, time_of

RATIOS = st.lists(st.floats(0.9, 1.3), min_size=FEWEST_PROCESSES, max_size=8)


def with_ratios(ratios, looks=1):
    """The verdict about a program that took so many times as long as the earlier one, a ratio a process."""
    run = replayed(1, processes=len(ratios))
    (record,) = run.cases
    own, before = record.variants
    timing = before.outcomes["timing"]
    timing = msgspec.structs.replace(
        timing,
        values={**timing.values, "log_ratio": tuple(math.log(one) for one in ratios)},
        details=msgspec.structs.replace(timing.details, looks=looks),
    )
    before = msgspec.structs.replace(before, outcomes={**before.outcomes, "timing": timing})
    record = msgspec.structs.replace(record, variants=(own, before))
    return time_of(compare(plain(BEFORE), msgspec.structs.replace(run, cases=(record,))))


@given(RATIOS)
def test_the_chance_is_that_of_a_t_test_of_the_processes_ratios(ratios):
    logs = [math.log(one) for one in ratios]
    if max(logs) - min(logs) < 1e-6:
        return

    expected = stats.ttest_1samp(logs, 0).pvalue

    assert with_ratios(ratios).chance == pytest.approx(expected, rel=1e-6)


@given(RATIOS, st.integers(1, 3))
def test_it_is_small_just_where_the_interval_excludes_1(ratios, looks):
    found = with_ratios(ratios, looks)
    excludes = not found.effect.decisive.low <= 1 <= found.effect.decisive.high

    assert excludes == (found.chance < 1 - CONFIDENCE)


def test_each_look_shares_it_and_it_is_1_at_most():
    ratios = (1.04, 1.06, 1.05, 1.07)
    once = with_ratios(ratios).chance

    assert with_ratios(ratios, looks=3).chance == pytest.approx(3 * once)
    assert with_ratios((0.99, 1.01, 1.0, 1.001), looks=3).chance == 1


def test_processes_that_agree_to_the_last_digit_leave_nothing_to_chance():
    assert with_ratios((1.1,) * 4).chance == pytest.approx(0, abs=1e-12)
    assert with_ratios((1.0,) * 4).chance == 1


def test_too_few_processes_have_no_chance():
    sides = Reading(METRICS["execution_s"], values=(1.0, 1.0)), Reading(METRICS["execution_s"], values=(1.0, 1.1, 1.2))

    assert with_ratios((1.1,) * FEWEST_PROCESSES).chance is not None
    assert with_ratios((1.1,) * (FEWEST_PROCESSES - 1)).chance is None
    assert find_chance_unpaired(*sides, minimum_effect=0.03) is None


@given(RATIOS, RATIOS, st.floats(0.5, 3), st.sampled_from([0.0, 0.05]), st.integers(1, 3))
def test_the_chance_of_unpaired_processes_is_the_level_from_which_on_their_interval_excludes_the_effect(
    above, below, factor, deviation, looks
):
    sides = [
        Reading(METRICS["execution_s"], values=tuple(values), looks=looks, shared=deviation**2 / 2)
        for values in ([factor * value for value in above], below)
    ]

    chance = find_chance_unpaired(*sides, minimum_effect=0.03)

    def excludes(level):
        try:
            ratio = compare_unpaired(*(side.known for side in sides), confidence=1 - level / looks, shared=deviation**2)
        except OverflowError:
            return False
        return ratio.low > 1.03 or ratio.high < 1 / 1.03

    assert LEAST_CHANCE <= chance <= 1
    assert chance == 1 or excludes(chance)
    assert chance == LEAST_CHANCE or not excludes(chance / 1.02)
