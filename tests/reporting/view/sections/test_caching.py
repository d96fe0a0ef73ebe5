import msgspec
import pytest

from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.record import Status
from jaxmeter.reporting.view.sections.caching import CACHE_STATES
from tests import samples
from tests.golden_texts import check_golden_scenes
from tests.reporting.view.page_text import write_row
from tests.reporting.views import by_variant, headings, page_of, section, tables

PLANNED = samples.planned_case(variants=("f:jit",))
ALL = {"cold_s": 0.06, "cached_s": 0.012, "warm_s": 5e-5, "new_shape_s": 0.05, "new_static_s": 0.055}


def page_with(outcome, planned=PLANNED, **changes):
    return page_of(samples.run((planned, samples.record(planned, {"f:jit": {"caching": outcome}})), **changes))


def ok(**values):
    return samples.Outcome(status=Status.OK, values=values)


def make_pages():
    """Pages with the cache states of a variant, by what is odd about them."""
    failed = samples.Outcome(
        status=Status.FAILED, reason="in stage 'cold': ValueError: no", values={"warm_s": (1e-3,) * 3}
    )
    unproven = samples.CacheStateCall(cache_state="warm", proven=False, elapsed_s=0.031, traces=1)
    usual = samples.caching(processes=3, cold_s=1.0, cached_s=0.5, warm_s=0.1)
    wide = (1e-12, 1e9, 1.0)
    two = samples.planned_case(variants=("lucky:jit", "sure:jit"))
    savings = {
        "lucky:jit": ok(cold_s=(1.0, 2.0, 3.0), cached_s=(0.01, 0.011, 0.012)),
        "sure:jit": ok(cold_s=(1.0, 1.01, 1.02), cached_s=(0.5, 0.51, 0.52)),
    }
    return {
        "a cache state that failed": page_with(failed),
        "one that was proven in some processes": page_with(
            samples.caching(calls=(samples.PROVEN_COLD, unproven), cold_s=1.0, cached_s=0.5, warm_s=0.1)
        ),
        "a cache that costs more than it saves": page_with(samples.caching(cold_s=0.010, cached_s=0.013, warm_s=5e-5)),
        "different numbers of processes": page_with(
            msgspec.structs.replace(usual, values={**usual.values, "warm_s": (0.1,)})
        ),
        "processes that differ beyond measure": page_with(
            ok(cold_s=wide, cached_s=wide, warm_s=(1.0,)), settings=samples.settings(confidence=1 - 1e-12)
        ),
        **{
            f"damaged times of {str(damaged)[:8]}": page_with(
                ok(cold_s=(damaged,) * 3, cached_s=(1.0, damaged, 1.0), warm_s=(1e-3,) * 3)
            )
            for damaged in (-1.0, 1e300, 10**400, None)
        },
        "a lucky saving and a sure one": page_of(
            samples.run((two, samples.record(two, {name: {"caching": one} for name, one in savings.items()})))
        ),
    }


def test_cache_states_read_as_their_golden_text():
    def lines(page):
        yield " | ".join(headings(page, "caching"))
        for table in tables(page, "caching")[:1]:
            yield from map(write_row, table.rows)

    check_golden_scenes("caching", {rule: list(lines(page)) for rule, page in make_pages().items()})


def test_where_it_was_measured_is_told_unless_everywhere():
    representative, everywhere = (
        section(page_with(samples.caching(**ALL), settings=samples.settings(everywhere=one)), "caching").parts[0]
        for one in ((), ("caching",))
    )

    assert (len(representative.notes), len(everywhere.notes)) == (1, 0)


def test_every_cache_state_of_the_probe_has_a_column():
    measured = [name for name, metric in METRICS.items() if metric.probe == "caching"]

    assert [cache_state.metric for cache_state in CACHE_STATES] == measured


@pytest.mark.parametrize(
    ("hits", "told"),
    [((0, 0, 0), "compiled again"), ((1, 1, 1), "read"), ((1, 0, 1), "read in 2 of 3, compiled again in 1 of 3")],
)
def test_what_jaxs_own_threshold_has_kept_stands_below_the_time(hits, told):
    calls = tuple(
        samples.CacheStateCall(
            cache_state="default_threshold", proven=True, elapsed_s=1.0, traces=1, compiled=1 - hit, hits=hit
        )
        for hit in hits
    )
    planned = msgspec.structs.replace(PLANNED, default_threshold=True)

    page = page_with(samples.caching(processes=3, calls=calls, default_threshold_s=1.0, **ALL), planned)

    assert by_variant(page, "caching")["f:jit"]["JAX's threshold"].endswith(f"] {told}")
    assert "JAX's threshold" not in by_variant(page_with(samples.caching(**ALL)), "caching")["f:jit"]


def test_a_call_that_took_0_seconds_has_a_number_and_no_ratio():
    values = {"cold_s": (0.1, 0.1, 0.1), "cached_s": (0.0, 0.0, 0.0), "warm_s": (1e-3,) * 3}

    row = by_variant(page_with(samples.Outcome(status=Status.OK, values=values)), "caching")["f:jit"]

    assert row["Filled cache"] == "0 ns [0, 0]"
    assert "Cold / filled" not in row
