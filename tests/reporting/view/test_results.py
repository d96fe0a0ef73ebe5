import pytest

from jaxmeter.harness.record import Status
from jaxmeter.reporting.view.page_model import Tone
from tests import samples
from tests.reporting.views import page_of


def results_of(*pairs, **changes):
    page = page_of(samples.run(*pairs, **changes))
    return {one.variant: one for suite in page.suites for case in suite.cases for one in case.results}


def told(value):
    return value.text.replace("\u202f", " ")


def test_a_result_has_time_speedup_first_call_and_memory_in_words_and_as_they_were_read():
    planned = samples.planned_case()

    result = results_of((planned, samples.fast_case(planned)))["selu:jit"]

    assert (told(result.speedup), result.speedup.tone) == ("10× [9.9, 10.1]", Tone.GOOD)
    assert told(result.time) == "50.0 µs [49.2, 50.8]"
    assert result.time.value == pytest.approx(5e-5, rel=1e-3)
    assert result.time.low < result.time.value < result.time.high
    assert (told(result.first), result.first.value) == ("61.0 ms", pytest.approx(0.061))
    assert (result.status, result.where) == ("ok", "● cpu")


def test_the_baseline_has_no_speedup_over_itself():
    planned = samples.planned_case()

    speedup = results_of((planned, samples.fast_case(planned)))["selu:eager"].speedup

    assert (speedup.text, speedup.value, speedup.tone) == ("baseline", None, Tone.MUTED)


def test_a_contended_time_is_marked_before_and_named_after():
    planned = samples.planned_case(variants=("f:jit",))
    record = samples.record(planned, {"f:jit": {"timing": samples.timing(1e-3, contended=3)}})

    time = results_of((planned, record))["f:jit"].time

    assert told(time).startswith("! 1.00 ms [")
    assert told(time).endswith("] contended")
    assert time.tone is Tone.WARN


@pytest.mark.parametrize(("spread", "wide"), [(1.0, False), (40.0, True)])
def test_an_interval_wider_than_a_factor_of_two_is_said_to_be_wide(spread, wide):
    planned = samples.planned_case(variants=("f:jit",))
    record = samples.record(planned, {"f:jit": {"timing": samples.timing(1e-3, spread=spread)}})

    time = results_of((planned, record))["f:jit"].time

    assert time.text.endswith(" wide") is wide
    assert (time.high / time.low > 2) is wide


@pytest.mark.parametrize("status", [Status.FAILED, Status.WRONG, Status.TIMED_OUT])
def test_a_variant_without_a_time_shows_how_it_ended(status):
    planned = samples.planned_case(variants=("f:jit",))
    record = samples.record(planned, {"f:jit": {"timing": samples.Outcome(status=status, reason="so")}})

    result = results_of((planned, record))["f:jit"]

    assert (result.time.text, result.time.value, result.time.tone) == (status.value, None, Tone.BAD)
    assert result.status == status.value


def test_memory_is_the_plan_and_without_one_what_a_call_held():
    planned = samples.planned_case(variants=("f:jit", "numpy:native"))
    call = samples.Outcome(status=Status.OK, values={"measured_peak_bytes": (2048,)})
    record = samples.record(
        planned,
        {
            "f:jit": {"memory": samples.memory(1024, 0, 0), "measured_memory": call},
            "numpy:native": {"measured_memory": call},
        },
    )

    results = results_of((planned, record))

    assert (told(results["f:jit"].memory), results["f:jit"].memory.value) == ("1.00 KiB", 1024)
    assert (told(results["numpy:native"].memory), results["numpy:native"].memory.value) == ("2.00 KiB in a call", 2048)
