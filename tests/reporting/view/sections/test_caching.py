import msgspec

from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.record import Status
from jaxmeter.reporting.view.sections.caching import CACHE_STATES
from tests import samples
from tests.golden_texts import check_golden_scenes
from tests.reporting.view.page_text import write_row
from tests.reporting.views import headings, page_of, section, tables

PLANNED = samples.planned_case(variants=("f:jit",))
ALL = {"cold_s": 0.06, "cached_s": 0.012, "warm_s": 5e-5, "new_shape_s": 0.05, "new_static_s": 0.055}


def page_with(outcome, case=PLANNED, **changes):
    return page_of(samples.one_case({"f:jit": {"caching": outcome}}, case, **changes))


def ok(**values):
    return samples.Outcome(status=Status.OK, values=values)


def page_with_threshold(hits):
    """The page of processes that found what JAX's own threshold has kept, or did not."""
    calls = tuple(
        samples.CacheStateCall(
            cache_state="default_threshold", proven=True, elapsed_s=1.0, traces=1, compiled=1 - int(hit), hits=int(hit)
        )
        for hit in hits
    )
    planned = msgspec.structs.replace(PLANNED, default_threshold=True)
    return page_with(samples.caching(processes=3, calls=calls, default_threshold_s=1.0, **ALL), planned)


def make_pages():
    """Pages with the cache states of a variant, by what is odd about them."""
    failed = samples.Outcome(
        status=Status.FAILED, reason="in stage 'cold': ValueError: no", values={"warm_s": (1e-3,) * 3}
    )
    proven = samples.CacheStateCall(cache_state="cold", proven=True, elapsed_s=0.05, traces=1, compiled=1)
    unproven = samples.CacheStateCall(cache_state="warm", proven=False, elapsed_s=0.031, traces=1)
    usual = samples.caching(processes=3, cold_s=1.0, cached_s=0.5, warm_s=0.1)
    wide = (1e-12, 1e9, 1.0)
    savings = {
        "lucky:jit": {"caching": ok(cold_s=(1.0, 2.0, 3.0), cached_s=(0.01, 0.011, 0.012))},
        "sure:jit": {"caching": ok(cold_s=(1.0, 1.01, 1.02), cached_s=(0.5, 0.51, 0.52))},
    }
    return {
        "a cache state that failed": page_with(failed),
        "one that was proven in some processes": page_with(
            samples.caching(calls=(proven, unproven), cold_s=1.0, cached_s=0.5, warm_s=0.1)
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
        "a call that took 0 seconds": page_with(ok(cold_s=(0.1,) * 3, cached_s=(0.0,) * 3, warm_s=(1e-3,) * 3)),
        **{f"JAX's own threshold, cache hits {hits}": page_with_threshold(hits) for hits in ("000", "111", "101")},
        "a lucky saving and a sure one": page_of(samples.one_case(savings)),
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
