import math
import re

import pytest

from jaxmeter.harness.metrics.statistics import Interval
from jaxmeter.harness.record import Outcome, Status, TimingDetails
from jaxmeter.reporting.view.cells import describe_trust, is_vague
from jaxmeter.reporting.view.runs import gather_cases, label_runs
from tests import samples
from tests.golden_texts import check_golden_scenes
from tests.reporting.views import kept

BASELINE = Outcome(status=Status.OK, values={"execution_s": (1e-3,) * 3}, details=TimingDetails(processes=3))


def speedup(error, *, processes=3, contended=0):
    """A speedup of 2 whose processes err by so much either way."""
    logs = (math.log(2) - error, math.log(2), math.log(2) + error)[:processes]
    values = {"execution_s": tuple(1e-3 / math.exp(one) for one in logs), "log_ratio": logs}
    return Outcome(status=Status.OK, values=values, details=TimingDetails(processes=processes, contended=contended))


def told(*speedups, baseline=BASELINE, mode="jit"):
    run = samples.one_case({"f:eager": baseline, **{f"g{index}:{mode}": one for index, one in enumerate(speedups)}})
    return describe_trust(gather_cases(label_runs(kept(run)))).replace("\u202f", " ")


def test_the_smallest_difference_is_what_the_intervals_for_verdicts_tell():
    # Three processes: t(99.5 %, 2 degrees) = 9.925, over the root of 3, of a standard deviation of 1, 2 and 4 %.
    halves = [math.exp(9.925 * error / math.sqrt(3)) - 1 for error in (0.01, 0.02, 0.04)]

    assert [round(100 * half, 1) for half in halves] == [5.9, 12.1, 25.8]
    assert re.findall(r"[\d.]+ %", told(speedup(0.01), speedup(0.02), speedup(0.04))) == ["12 %", "23 %"]


@pytest.mark.parametrize(("mode", "smallest"), [("jit", "5.9"), ("native", "11")])
def test_what_two_runs_of_a_speedup_differ_by_counts_beside_a_peer_alone(mode, smallest):
    varied = Outcome(
        status=Status.OK,
        values={**BASELINE.values, "calibration_s": (1e-4, 1e-4, 2e-4)},
        details=TimingDetails(processes=3, calibration=samples.CALIBRATION),
    )

    # Of a peer the sum of squares of log(1.059) and 2.576 times 3.5 %.
    assert f" {smallest} %;" in told(speedup(0.01), baseline=varied, mode=mode)


def test_nothing_below_the_minimum_effect_is_told():
    assert re.findall(r"[\d.]+ %", told(speedup(0.0001), speedup(0.0001))) == ["3 %", "3 %"]


def test_what_can_be_told_apart_reads_as_its_golden_text():
    untimed = samples.one_case({}, samples.planned_case())
    scenes = {
        "several speedups": told(speedup(0.01), speedup(0.02), speedup(0.04)),
        "one speedup": told(speedup(0.01)),
        "two processes": told(speedup(0.01, processes=2)),
        "no speedup": told(),
        "a contended time": told(speedup(0.01, contended=2), speedup(0.01)),
        "beyond double, a factor: exp(9.925 * 0.4 / 3 ** 0.5)": told(speedup(0.4)),
        "no time": describe_trust(gather_cases(label_runs(kept(untimed)))),
    }

    check_golden_scenes("trust", scenes)


@pytest.mark.parametrize(
    ("low", "high", "vague"),
    [(1.0, 2.0, False), (1.0, 2.01, True), (-1.0, 0.5, True), (None, 2.0, False), (1.0, None, False)],
)
def test_bounds_further_apart_than_a_factor_of_two_are_vague(low, high, vague):
    assert is_vague(Interval(low, 1.5, high, 3)) is vague
    assert not is_vague(None)
