import msgspec
import pytest

from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.record import Status
from jaxmeter.reporting.view.sections.caching import CACHE_STATES
from tests import samples
from tests.reporting.views import by_variant, headings, page_of, section

PLANNED = samples.planned_case(variants=("f:jit",))
ALL = {"cold_s": 0.06, "cached_s": 0.012, "warm_s": 5e-5, "new_shape_s": 0.05, "new_static_s": 0.055}


def page_with(outcome, planned=PLANNED, **changes):
    return page_of(samples.run((planned, samples.record(planned, {"f:jit": {"caching": outcome}})), **changes))


def row_of(page):
    return by_variant(page, "caching")["f:jit"]


def test_a_cache_state_that_failed_has_the_reason_of_the_failure():
    failed = samples.Outcome(
        status=Status.FAILED, reason="in stage 'cold': ValueError: no", values={"warm_s": (1e-3,) * 3}
    )

    row = row_of(page_with(failed))

    assert (row["Cold"], row["Warm"]) == ("no number", "1.00 ms [1.00, 1.00]")
    assert row["No number, why"] == "failed: in stage 'cold': ValueError: no"


def test_a_cache_state_that_was_proven_in_some_processes_only_has_a_time_and_the_reason():
    unproven = samples.CacheStateCall(cache_state="warm", proven=False, elapsed_s=0.031, traces=1)
    outcome = samples.caching(calls=(samples.PROVEN_COLD, unproven), cold_s=1.0, cached_s=0.5, warm_s=0.1)

    row = row_of(page_with(outcome))

    assert row["Warm"].startswith("100 ms")
    assert row["No number, why"].startswith("warm: not proven")


def test_cache_states_that_nobody_declared_have_no_column():
    page = page_with(samples.caching(cold_s=0.06, cached_s=0.012, warm_s=5e-5))

    assert headings(page, "caching") == [
        "Variant",
        "Cold",
        "Filled cache",
        "Warm",
        "The cache saves",
        "Cold / filled",
        "n",
    ]


def test_a_cache_that_costs_more_than_it_saves_saves_less_than_nothing():
    row = row_of(page_with(samples.caching(cold_s=0.010, cached_s=0.013, warm_s=5e-5)))

    assert row["The cache saves"] == "−3.0 ms [−3.5, −2.5]"
    assert row["Cold / filled"].startswith("0.77×")


def test_the_largest_saving_is_the_surest():
    planned = samples.planned_case(variants=("lucky:jit", "sure:jit"))
    lucky = {"cold_s": (1.0, 2.0, 3.0), "cached_s": (0.01, 0.011, 0.012)}
    sure = {"cold_s": (1.0, 1.01, 1.02), "cached_s": (0.5, 0.51, 0.52)}
    outcomes = {
        name: {"caching": samples.Outcome(status=Status.OK, values=values)}
        for name, values in (("lucky:jit", lucky), ("sure:jit", sure))
    }

    answer = section(page_of(samples.run((planned, samples.record(planned, outcomes)))), "caching").answer

    assert "sure:jit" in answer


def test_cache_states_of_different_numbers_of_processes_say_so():
    outcome = samples.caching(processes=3, cold_s=1.0, cached_s=0.5, warm_s=0.1)

    row = row_of(page_with(msgspec.structs.replace(outcome, values={**outcome.values, "warm_s": (0.1,)})))

    assert row["n"] == "1 to 3"


def test_where_it_was_measured_is_told_unless_everywhere():
    representative, everywhere = (
        section(page_with(samples.caching(**ALL), settings=samples.settings(everywhere=one)), "caching").parts[0]
        for one in ((), ("caching",))
    )

    assert (len(representative.notes), len(everywhere.notes)) == (1, 0)


@pytest.mark.parametrize("damaged", [-1.0, 1e300, 10**400, None])
def test_damaged_times_are_missing_and_have_no_ratio(damaged):
    values = {"cold_s": (damaged,) * 3, "cached_s": (1.0, damaged, 1.0), "warm_s": (1e-3,) * 3}

    row = row_of(page_with(samples.Outcome(status=Status.OK, values=values)))

    assert (row["Cold"], row["Filled cache"]) == ("no number", "1.00 s")
    assert "Cold / filled" not in row
    assert row["No number, why"] == "no number recorded: cold"


def test_processes_that_differ_beyond_measure_have_a_ratio_without_bounds():
    values = {"cold_s": (1e-12, 1e9, 1.0), "cached_s": (1e-12, 1e9, 1.0), "warm_s": (1.0,)}
    settings = samples.settings(confidence=1 - 1e-12)

    row = row_of(page_with(samples.Outcome(status=Status.OK, values=values), settings=settings))

    assert row["Cold / filled"] == "1.00× —"


def test_every_cache_state_of_the_probe_has_a_column():
    measured = [name for name, metric in METRICS.items() if metric.probe == "caching"]

    assert [cache_state.metric for cache_state in CACHE_STATES] == measured


def test_a_call_that_took_0_seconds_has_a_number_and_no_ratio():
    values = {"cold_s": (0.1, 0.1, 0.1), "cached_s": (0.0, 0.0, 0.0), "warm_s": (1e-3,) * 3}

    row = row_of(page_with(samples.Outcome(status=Status.OK, values=values)))

    assert row["Filled cache"] == "0 ns [0, 0]"
    assert "Cold / filled" not in row
