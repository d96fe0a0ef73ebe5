"""The estimate of a case while its run goes on."""

import pytest

from jaxmeter.harness.parent.case import describe_estimate, describe_seconds
from jaxmeter.harness.record import Answer, Status
from tests import samples

THREE = samples.planned_case(variants=("f:eager", "f:jit", "g:jit"), baseline="f:eager")


def of(planned, **timings):
    outcomes = {f"{name[0]}:{name[2:]}": {"timing": timing} for name, timing in timings.items()}
    return describe_estimate(samples.manifest([planned]), samples.record(planned, outcomes))


def test_the_speedup_that_answers_comes_with_its_half_width():
    answered = samples.planned_case(
        variants=("f:eager", "f:jit", "g:jit"),
        baseline="f:eager",
        answer=Answer(question="Which?", variant="g:jit", against="f:eager", metric="execution_s"),
    )
    timings = {
        "f_eager": samples.timing(4e-3),
        "f_jit": samples.timing(2e-3, baseline_s=4e-3),
        "g_jit": samples.timing(1e-3, baseline_s=4e-3),
    }

    first, answer = of(THREE, **timings), of(answered, **timings)

    assert first.startswith("f:jit 2")
    assert answer.startswith("g:jit 4")
    assert "× ± " in first
    assert answer.endswith("\u202f%")


def test_two_processes_give_an_estimate_and_no_half_width():
    two = samples.timing(2e-3, baseline_s=4e-3, processes=2)

    assert of(THREE, f_eager=samples.timing(4e-3, processes=2), f_jit=two).endswith("×")


def test_a_speedup_that_the_report_withholds_is_not_shown_while_the_run_goes_on():
    wrong = samples.with_values(samples.timing(2e-3, baseline_s=4e-3), log_ratio=(1e4,) * 5)

    assert of(THREE, f_eager=samples.timing(4e-3), f_jit=wrong).startswith("f:eager 4.00\u202fms")


def test_a_case_without_a_speedup_has_a_time():
    assert of(THREE, f_eager=samples.timing(2.5e-3)).startswith("f:eager 2.50\u202fms ± ")
    assert of(THREE, f_eager=samples.timing(7e-6)).startswith("f:eager 7.00\u202fµs ± ")


def test_before_any_time_there_is_nothing():
    failed = samples.timing(1e-3)

    assert of(THREE) == ""
    assert of(THREE, f_eager=type(failed)(status=Status.FAILED, reason="no luck")) == ""


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0 s"), (99.4, "99 s"), (100, "2 min"), (1800, "30 min")])
def test_a_duration_is_written_as_roughly_as_it_is_known(seconds, text):
    assert describe_seconds(seconds) == text
