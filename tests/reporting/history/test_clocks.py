from jaxmeter.reporting.history.series import find_clock_faults
from tests.reporting.history.runs import night


def test_runs_in_order_are_fine():
    runs = [night(0, 1e-3), night(1, 1e-3, against="run-000")]

    assert list(find_clock_faults(runs)) == []


def test_a_run_that_ended_before_it_began_is_named():
    (said,) = find_clock_faults([night(3, 1e-3, ended="2026-01-01T00:00:00Z")])

    assert said.startswith("run run-003 ended before it began")


def test_a_run_that_began_before_the_one_that_it_was_measured_against_is_named():
    (said,) = find_clock_faults([night(5, 1e-3), night(2, 1e-3, against="run-005")])

    assert said.startswith("run run-002 began before run run-005")


def test_of_a_run_that_has_not_ended_and_an_unknown_baseline_nothing_is_said():
    assert list(find_clock_faults([night(0, 1e-3, ended=None, against="elsewhere")])) == []
