import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.machine.places import PLACES
from harness.parent.prepare_run import UsageError, check_budget
from harness.plan import estimate as module
from harness.plan.estimate import (
    LOADING,
    PROCESS_S,
    TIMED_VARIANT_S,
    VARIANT_S,
    WARM_UP_CALLS,
    estimate,
    first_round_s,
    launch_s,
)
from harness.plan.launches import Launch, plan_launches
from harness.plan.probes import PROBE_NAMES
from harness.plan.settings import make_settings
from harness.plan.work import UNKNOWN, Work, call_s, compile_s
from harness.record import PlannedCase
from harness.record.layout import name_file
from tests import samples

LEVELS = ("quick", "default", "full")
SETTINGS = make_settings("default", budget_s=1e9, suites=(), run_id="a")


def case(suite: str, name: str, variants: tuple = ("a:jit",)) -> PlannedCase:
    return samples.planned_case(name.partition("[")[0], suite=suite, name=name, id=name_file(name), variants=variants)


def launch(kind: str, *variants: str, **options) -> Launch:
    return Launch(case="c", kind=kind, looks={options.pop("probe", kind): variants}, **options)


def seconds(one: Launch, **work: Work) -> float:
    """Of a process, with the work of each variant by its mode."""
    return launch_s(one, SETTINGS, {"c": {f"f:{mode}": asked for mode, asked in work.items()}})


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

    found = estimate(plan_launches(cases, settings), settings, {})

    assert 0 <= found.least_s <= found.most_s <= settings.budget_s


def test_more_launches_cases_or_variants_take_longer():
    def least(count: int, launches: int, variants: tuple[str, ...]) -> float:
        settings = make_settings("full", launches=launches, suites=(), run_id="a")
        cases = [case("s", f"w[n={number}]", variants) for number in range(count)]
        return estimate(plan_launches(cases, settings), settings, {}).least_s

    assert least(1, 5, ("a:jit",)) < least(2, 5, ("a:jit",))
    assert least(1, 5, ("a:jit",)) < least(1, 8, ("a:jit",))
    assert least(1, 5, ("a:jit",)) < least(1, 5, ("a:jit", "b:jit"))
    assert least(0, 5, ()) == 0


def test_the_least_is_without_what_is_left_out_where_time_is_short():
    kept, extra = launch("timing", "f:jit"), launch("timing", "f:jit", round=3, extra=True)

    found = estimate([kept, extra], SETTINGS, {})

    assert (found.fewest, found.most) == (1, 2)
    assert found.least_s == launch_s(kept, SETTINGS, {})
    assert found.most_s == pytest.approx(2 * found.least_s)


def test_the_first_round_is_every_process_of_it():
    first, second = launch("timing", "f:jit"), launch("timing", "f:jit", round=1)

    assert first_round_s([first, first, second], SETTINGS, {}) == 2 * launch_s(first, SETTINGS, {})


# One process


SLOW = Work(programs=1, equations=1000, flops=1e12)
SLOW_CALL_S, SLOW_COMPILE_S = call_s(SLOW, "jit"), compile_s(SLOW, "jit")


def test_what_is_not_known_is_small_and_quick():
    assert seconds(launch("compilation", "f:jit")) == seconds(launch("compilation", "f:jit"), jit=UNKNOWN)


def test_a_cold_process_compiles_and_calls_and_the_first_calls_twice():
    first, later = launch("compilation", "f:jit"), launch("compilation", "f:jit", round=1)

    assert seconds(later, jit=SLOW) == pytest.approx(PROCESS_S + VARIANT_S + SLOW_COMPILE_S + SLOW_CALL_S)
    assert seconds(first, jit=SLOW) - seconds(later, jit=SLOW) == pytest.approx(SLOW_CALL_S)


@pytest.mark.parametrize("kind", ["timing", "check", "shapes"])
def test_a_process_takes_as_much_longer_as_its_devices_take_to_begin(kind):
    host, other = (launch(kind, "f:jit", probe="numerics", begins_s=begins_s) for begins_s in (0.0, 0.6))

    assert seconds(other, jit=SLOW) - seconds(host, jit=SLOW) == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("one", "times"),
    [
        (launch("compilation", "f:jit"), 1),
        (launch("compilation", "f:aot"), 1),
        (launch("caching", "f:jit", regime="cold"), 1),
        (launch("caching", "f:jit", regime="cached"), 0),
        (launch("timing", "f:jit", "numpy:native"), 0),
        (launch("residency", "f:jit"), 0),
        (launch("shapes", "f:eager", probe="numerics"), 0),
        (Launch(case="c", kind="check", looks={"numerics": ("f:jit",), "memory": ("f:jit",)}), 1),
    ],
    ids=lambda one: f"{one.kind} {one.regime} {one.variants[0]}" if isinstance(one, Launch) else "",
)
def test_kernels_are_tried_out_once_where_a_program_is_compiled_and_not_where_it_is_loaded(one, times):
    def took(tuning_s):
        work = msgspec.structs.replace(SLOW, tuning_s=tuning_s)
        return launch_s(one, SETTINGS, {"c": dict.fromkeys(one.variants, work)})

    assert took(0.8) - took(0.0) == pytest.approx(0.8 * times)


def test_every_process_of_a_place_takes_what_its_row_says():
    settings = make_settings("default", probes=tuple(PROBE_NAMES), suites=(), run_id="a")
    gpu = msgspec.structs.replace(case("s", "w[n=1]", ("a:jit", "numpy:native")), where="gpu", represents_workload=True)
    place = PLACES["gpu"]

    begins_s = {one.kind: one.begins_s for one in plan_launches([gpu], settings)}

    assert 0 < place.begins_s == begins_s["timing"] == begins_s["check"] == begins_s["shapes"]
    assert begins_s["residency"] == place.begins_s + place.ahead_s > place.begins_s


def test_a_program_ahead_of_time_is_compiled_again_from_what_was_exported():
    one, other = launch("compilation", "f:jit"), launch("compilation", "f:aot")

    assert seconds(other, aot=SLOW) - seconds(one, jit=SLOW) == pytest.approx(SLOW_COMPILE_S)


def test_the_check_compiles_again_for_memory_and_computes_a_reference_once():
    alone = launch("check", "f:jit", probe="numerics")
    both = msgspec.structs.replace(alone, looks={"numerics": ("f:jit",), "memory": ("f:jit",)})
    reference_s = module.REFERENCE * call_s(SLOW, "native")

    around_s = PROCESS_S + VARIANT_S + 2 * SLOW_CALL_S + reference_s
    assert seconds(alone, jit=SLOW) == pytest.approx(around_s + SLOW_COMPILE_S)
    assert seconds(both, jit=SLOW) == pytest.approx(around_s + 2 * SLOW_COMPILE_S)


def test_a_process_that_only_fills_the_cache_calls_nothing():
    refill = launch("check", "f:jit", probe="numerics", refills=True)

    assert seconds(refill, jit=SLOW) == pytest.approx(PROCESS_S + SLOW_COMPILE_S)


@pytest.mark.parametrize(("regime", "compiles"), [("cold", 1), ("cached", LOADING), ("warm", 1), ("new_shape", 2)])
def test_a_regime_of_the_caches_compiles_as_often_as_it_says(regime, compiles):
    assert seconds(launch("caching", "f:jit", regime=regime), jit=SLOW) == pytest.approx(
        PROCESS_S + compiles * SLOW_COMPILE_S + 2 * SLOW_CALL_S
    )


def test_a_quick_call_is_timed_in_all_its_blocks():
    loading_s = LOADING * compile_s(UNKNOWN, "jit")

    assert seconds(launch("timing", "f:jit")) == pytest.approx(
        PROCESS_S + loading_s + TIMED_VARIANT_S + SETTINGS.blocks * SETTINGS.block_s
    )


@pytest.mark.parametrize(("one_s", "sweeps"), [(0.05, 6), (1.0, 2), (5.0, 2)])
def test_sweeps_of_slow_calls_are_cut(monkeypatch, one_s, sweeps):
    monkeypatch.setattr(module, "call_s", lambda work, mode: one_s)
    loading_s = LOADING * compile_s(UNKNOWN, "jit")

    found = seconds(launch("timing", "f:jit"))

    assert found == pytest.approx(PROCESS_S + loading_s + (WARM_UP_CALLS + sweeps) * one_s)


def test_variants_that_alternate_share_the_time_of_their_sweeps(monkeypatch):
    monkeypatch.setattr(module, "call_s", lambda work, mode: 1.0 if mode == "eager" else 1e-6)
    alone = seconds(launch("timing", "f:jit"))

    assert seconds(launch("timing", "f:jit", "f:eager")) > alone + 6 * 1.0


# A budget


def test_a_budget_far_below_one_round_is_refused_with_what_it_needs():
    settings = make_settings("quick", suites=(), run_id="a")
    launches = plan_launches([case("s", "w[n=1]"), case("s", "w[n=2]")], settings)
    needed_s = first_round_s(launches, settings, {})

    check_budget(launches, settings, {}, math.nextafter(needed_s / 2, math.inf))
    with pytest.raises(UsageError) as caught:
        check_budget(launches, settings, {}, needed_s / 2.5)

    said = f"--budget {needed_s / 2.5:g}s is less than one round of 2 cases takes (about {needed_s:.0f} s); "
    assert str(caught.value) == f"{said}give more, or select fewer cases"


def test_where_nothing_is_left_to_do_any_budget_is_enough():
    check_budget([], SETTINGS, {}, 1.0)
