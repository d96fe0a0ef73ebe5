import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.plan.estimate import PROCESS_S, estimate
from harness.plan.launches import plan_launches
from harness.plan.probes import COLD_VARIANT_S, PROBE_NAMES, TIMED_VARIANT_S
from harness.plan.settings import make_settings
from harness.record import PlannedCase
from harness.record.layout import name_file
from tests import samples

LEVELS = ("quick", "default", "full")


def case(suite: str, name: str, variants: tuple = ("a:jit",)) -> PlannedCase:
    return samples.planned_case(name.partition("[")[0], suite=suite, name=name, id=name_file(name), variants=variants)


variants = st.lists(st.sampled_from(["a:jit", "b:eager", "numpy:native"]), min_size=1, unique=True).map(tuple)


@given(
    variants=st.lists(variants, max_size=4),
    level=st.sampled_from(LEVELS),
    probes=st.sets(st.sampled_from(PROBE_NAMES)),
    budget_s=st.none() | st.floats(0, 1000),
)
def test_a_plan_takes_between_its_least_and_its_most_and_never_more_than_the_budget(variants, level, probes, budget_s):
    settings = make_settings(level, probes=tuple(probes), budget_s=budget_s, suites=(), run_id="a")
    cases = [case("s", f"w[n={number}]", names) for number, names in enumerate(variants)]

    found = estimate(plan_launches(cases, settings), settings)

    assert 0 <= found.least_s <= found.most_s <= settings.budget_s


def test_more_launches_cases_or_variants_take_longer():
    def least(count: int, launches: int, variants: tuple[str, ...]) -> float:
        settings = make_settings("full", launches=launches, suites=(), run_id="a")
        cases = [case("s", f"w[n={number}]", variants) for number in range(count)]
        return estimate(plan_launches(cases, settings), settings).least_s

    assert least(1, 5, ("a:jit",)) < least(2, 5, ("a:jit",))
    assert least(1, 5, ("a:jit",)) < least(1, 8, ("a:jit",))
    assert least(1, 5, ("a:jit",)) < least(1, 5, ("a:jit", "b:jit"))
    assert least(0, 5, ()) == 0


def test_the_estimate_counts_the_processes_of_the_list():
    settings = make_settings("default", suites=(), run_id="a")
    launches = plan_launches([case("s", "w[n=1]", ("a:jit", "numpy:native"))], settings)

    found = estimate(launches, settings)

    # Shapes, two checks, residency; cold rounds; a launch for JAX and one for the peer.
    assert (found.fewest, found.most) == (1 + 2 + 1 + 3 + 2 * 3, 1 + 2 + 1 + 5 + 2 * 12)


def test_a_process_takes_its_beginning_and_the_time_of_its_variants():
    settings = make_settings("quick", launches=1, probes=("timing",), suites=(), run_id="a")
    launches = plan_launches([case("s", "w[n=1]", ("a:jit", "b:jit"))], settings)

    # Shapes, check and one launch of both.
    sweeps_s = settings.blocks * settings.block_s + TIMED_VARIANT_S
    assert estimate(launches, settings).least_s == pytest.approx(3 * PROCESS_S + 4 * COLD_VARIANT_S + 2 * sweeps_s)


def test_timing_takes_up_to_the_limit_of_each_case_at_most():
    settings = make_settings("default", probes=("timing",), suites=(), run_id="a")
    cases = [case("s", f"w[n={number}]", ("a:jit",)) for number in range(2)]

    found = estimate(plan_launches(cases, settings), settings)

    assert found.most_s == pytest.approx(2 * (2 * (PROCESS_S + COLD_VARIANT_S) + settings.case_limit_s))


def test_where_even_the_fewest_launches_take_longer_than_a_cases_limit_all_of_them_count():
    settings = make_settings("default", probes=("timing",), budget_s=1e9, suites=(), run_id="a")
    settings = msgspec.structs.replace(settings, case_limit_s=0.0)
    launches = plan_launches([case("s", "w[n=1]", ("a:jit", "numpy:native"))], settings)

    found = estimate(launches, settings)

    sweeps_s = settings.blocks * settings.block_s + TIMED_VARIANT_S
    around_s = 3 * PROCESS_S + 4 * COLD_VARIANT_S  # shapes, and a check for each library
    least_s = pytest.approx(around_s + 3 * 2 * (PROCESS_S + sweeps_s))
    assert (found.least_s, found.most_s) == (least_s, least_s)
