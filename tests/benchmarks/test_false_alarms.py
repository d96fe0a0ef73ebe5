"""How verdicts on a function against itself are counted."""

import math

from benchmarks.false_alarms import describe_readings
from benchmarks.same_twice import twice, unequal
from jaxmeter.harness.metrics.metric import Reading
from jaxmeter.harness.metrics.statistics import speedup
from jaxmeter.harness.metrics.table import METRICS


def reading(*log_ratios: float) -> Reading:
    """A speedup from so many processes."""
    return Reading(METRICS["speedup"], tuple(map(math.exp, log_ratios)), speedup(log_ratios))


def test_verdicts_are_counted_with_the_processes_that_they_rest_on():
    equal, different = reading(-0.001, 0.0, 0.001, 0.0), reading(0.099, 0.1, 0.101)

    described = describe_readings([equal, different])

    assert described.startswith("1 of 2 (50.0 %; 95 % bounds 1.3 to 98.7 %) differ, minimum effect 3 %; 0 doubted; ")
    assert "processes median 3.5, 3 to 4; |estimate - 1| median 5.00 %, largest 10.00 %" in described


def test_a_run_without_results_has_no_rate():
    assert describe_readings([]) == "no case was measured"


def test_beside_a_function_declared_twice_stands_another():
    assert twice.variants == ("one:jit", "same:jit", "slower:jit")
    assert unequal.variants == ("one:jit", "same:jit", "other:jit")
