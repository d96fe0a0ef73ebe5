import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtrit

from jaxmeter.harness.metrics.statistics import CONFIDENCE, Interval, speedup
from jaxmeter.harness.record.runs import CONFIRMING_PROCESSES, MOST_CONFIRMING
from jaxmeter.reporting.compare.ratios import SHORTER, find_scatter, plan_processes


def ratio_of(scatter, *, count=5, estimate=1.04):
    """A ratio whose processes scatter so."""
    half = float(stdtrit(count - 1, (1 + CONFIDENCE) / 2)) * scatter / math.sqrt(count)
    return Interval(estimate * math.exp(-half), estimate, estimate * math.exp(half), count)


def finds(scatter, slowdown, count, *, among):
    """Whether so many shorter processes find a slowdown in 95 of 100 cases, at 1 % among so many."""
    reach = stdtrit(count - 1, 1 - 0.01 / among / 2) + stdtrit(count - 1, 0.95)
    return reach * SHORTER * scatter / math.sqrt(count) <= math.log1p(slowdown)


@given(st.lists(st.floats(-0.5, 0.5), min_size=3, max_size=12).filter(lambda logs: len(set(logs)) > 1))
def test_the_scatter_is_that_of_the_processes(logs):
    assert find_scatter(speedup(logs)) == pytest.approx(statistics.stdev(logs), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(
    "ratio", [Interval(None, 1.0, None, 2), Interval(None, 1.0, None, 5), Interval(0.9, 1.0, 1.1, 2)]
)
def test_without_bounds_nothing_tells_the_scatter(ratio):
    assert find_scatter(ratio) is None
    assert plan_processes([(ratio, 0.03)], among=60) == CONFIRMING_PROCESSES


def test_a_quiet_machine_needs_no_more_than_usual_and_one_that_tells_nothing_is_given_the_most():
    quiet = (ratio_of(0.013), 0.03)

    assert plan_processes([], among=60) == plan_processes([quiet], among=60) == CONFIRMING_PROCESSES
    assert plan_processes([quiet, quiet, (ratio_of(0.5), 0.03)], among=60) == CONFIRMING_PROCESSES
    assert plan_processes([(ratio_of(0.2), 0.03)], among=60) == MOST_CONFIRMING


@given(scatter=st.floats(0.001, 0.1), share=st.sampled_from((0.0, 0.02, 0.03, 0.05)), among=st.integers(1, 500))
def test_there_are_as_few_as_find_half_as_much_again_as_is_allowed(scatter, share, among):
    count, slowdown = plan_processes([(ratio_of(scatter), share)], among=among), max(1.5 * share, 0.03)

    assert count == MOST_CONFIRMING or finds(scatter, slowdown * (1 + 1e-9), count, among=among)
    assert count == CONFIRMING_PROCESSES or not finds(scatter, slowdown * (1 - 1e-9), count - 1, among=among)


def test_so_many_processes_find_what_they_should():
    """Simulated: of 2000 programs slower by 4.5 %, with processes that scatter by 1.75 %, shorter ones by more."""
    draw, scatter, among = random.Random(1), 0.0175, 60
    count = plan_processes([(ratio_of(scatter), 0.03)], among=among)
    assert CONFIRMING_PROCESSES < count < MOST_CONFIRMING
    found = 0
    for _ in range(2000):
        logs = [draw.gauss(math.log1p(0.045), SHORTER * scatter) for _ in range(count)]
        found += speedup(logs, confidence=1 - 0.01 / among).low > 1
    assert 0.92 < found / 2000 < 0.98
