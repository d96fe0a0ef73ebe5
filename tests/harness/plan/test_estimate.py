import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmeter.harness.machine.platforms import PLATFORMS
from jaxmeter.harness.parent.prepare_run import UsageError, check_budget
from jaxmeter.harness.plan import estimate as module
from jaxmeter.harness.plan.estimate import (
    LOADING,
    PROCESS_S,
    TIMED_VARIANT_S,
    VARIANT_S,
    WARM_UP_CALLS,
    estimate,
    first_round_s,
    process_s,
)
from jaxmeter.harness.plan.probes import PROBE_NAMES
from jaxmeter.harness.plan.processes import PlannedProcess, plan_processes
from jaxmeter.harness.plan.settings import make_settings
from jaxmeter.harness.plan.work import UNKNOWN, Work, call_s, compile_s
from jaxmeter.harness.record import PlannedCase
from jaxmeter.harness.record.layout import name_file
from tests import samples

LEVELS = ("quick", "default", "full")
SETTINGS = make_settings("default", budget_s=1e9, suites=(), run_id="a")


def case(suite: str, name: str, variants: tuple = ("a:jit",)) -> PlannedCase:
    return samples.planned_case(name.partition("[")[0], suite=suite, name=name, id=name_file(name), variants=variants)


def process(kind: str, *variants: str, **options) -> PlannedProcess:
    return PlannedProcess(case="c", kind=kind, assignments={options.pop("probe", kind): variants}, **options)


def seconds(one: PlannedProcess, **work: Work) -> float:
    """Of a process, with the work of each variant by its mode."""
    return process_s(one, SETTINGS, {"c": {f"f:{mode}": asked for mode, asked in work.items()}})


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

    found = estimate(plan_processes(cases, settings), settings, {})

    assert 0 <= found.least_s <= found.most_s <= settings.budget_s


def test_more_processes_cases_or_variants_take_longer():
    def least(count: int, processes: int, variants: tuple[str, ...]) -> float:
        settings = make_settings("full", processes=processes, suites=(), run_id="a")
        cases = [case("s", f"w[n={number}]", variants) for number in range(count)]
        return estimate(plan_processes(cases, settings), settings, {}).least_s

    assert least(1, 5, ("a:jit",)) < least(2, 5, ("a:jit",))
    assert least(1, 5, ("a:jit",)) < least(1, 8, ("a:jit",))
    assert least(1, 5, ("a:jit",)) < least(1, 5, ("a:jit", "b:jit"))
    assert least(0, 5, ()) == 0


def test_the_least_is_without_what_is_left_out_where_time_is_short():
    kept, extra = process("timing", "f:jit"), process("timing", "f:jit", round=3, extra=True)

    found = estimate([kept, extra], SETTINGS, {})

    assert (found.fewest, found.most) == (1, 2)
    assert found.least_s == process_s(kept, SETTINGS, {})
    assert found.most_s == pytest.approx(2 * found.least_s)


def test_the_first_round_is_every_process_of_it():
    first, second = process("timing", "f:jit"), process("timing", "f:jit", round=1)

    assert first_round_s([first, first, second], SETTINGS, {}) == 2 * process_s(first, SETTINGS, {})


# One process


SLOW = Work(programs=1, equations=1000, flops=1e12)
SLOW_CALL_S, SLOW_COMPILE_S = call_s(SLOW, "jit"), compile_s(SLOW, "jit")


def test_what_is_not_known_is_small_and_quick():
    assert seconds(process("compilation", "f:jit")) == seconds(process("compilation", "f:jit"), jit=UNKNOWN)


def test_a_cold_process_compiles_and_calls_and_the_first_calls_twice():
    first, later = process("compilation", "f:jit"), process("compilation", "f:jit", round=1)

    assert seconds(later, jit=SLOW) == pytest.approx(PROCESS_S + VARIANT_S + SLOW_COMPILE_S + SLOW_CALL_S)
    assert seconds(first, jit=SLOW) - seconds(later, jit=SLOW) == pytest.approx(SLOW_CALL_S)


@pytest.mark.parametrize("kind", ["timing", "check", "shapes"])
def test_a_process_takes_as_much_longer_as_its_devices_take_to_begin(kind):
    host, other = (process(kind, "f:jit", probe="numerics", begins_s=begins_s) for begins_s in (0.0, 0.6))

    assert seconds(other, jit=SLOW) - seconds(host, jit=SLOW) == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("one", "times"),
    [
        (process("compilation", "f:jit"), 1),
        (process("compilation", "f:aot"), 1),
        (process("caching", "f:jit", cache_state="cold"), 1),
        (process("caching", "f:jit", cache_state="cached"), 0),
        (process("timing", "f:jit", "numpy:native"), 0),
        (process("measured_memory", "f:jit"), 0),
        (process("shapes", "f:eager", probe="numerics"), 0),
        (PlannedProcess(case="c", kind="check", assignments={"numerics": ("f:jit",), "memory": ("f:jit",)}), 1),
    ],
    ids=lambda one: f"{one.kind} {one.cache_state} {one.variants[0]}" if isinstance(one, PlannedProcess) else "",
)
def test_kernels_are_tried_out_once_where_a_program_is_compiled_and_not_where_it_is_loaded(one, times):
    def took(tuning_s):
        work = msgspec.structs.replace(SLOW, tuning_s=tuning_s)
        return process_s(one, SETTINGS, {"c": dict.fromkeys(one.variants, work)})

    assert took(0.8) - took(0.0) == pytest.approx(0.8 * times)


def test_every_process_of_a_platform_takes_what_its_row_says():
    settings = make_settings("default", probes=tuple(PROBE_NAMES), suites=(), run_id="a")
    gpu = msgspec.structs.replace(
        case("s", "w[n=1]", ("a:jit", "numpy:native")), platform="gpu", represents_workload=True
    )
    platform = PLATFORMS["gpu"]

    begins_s = {one.kind: one.begins_s for one in plan_processes([gpu], settings)}

    assert 0 < platform.begins_s == begins_s["timing"] == begins_s["check"] == begins_s["shapes"]
    assert begins_s["measured_memory"] == platform.begins_s + platform.ahead_s > platform.begins_s


def test_a_program_ahead_of_time_is_compiled_again_from_what_was_exported():
    one, other = process("compilation", "f:jit"), process("compilation", "f:aot")

    assert seconds(other, aot=SLOW) - seconds(one, jit=SLOW) == pytest.approx(SLOW_COMPILE_S)


def test_the_check_compiles_again_for_memory_and_computes_a_reference_once():
    alone = process("check", "f:jit", probe="numerics")
    both = msgspec.structs.replace(alone, assignments={"numerics": ("f:jit",), "memory": ("f:jit",)})
    reference_s = module.REFERENCE * call_s(SLOW, "native")

    around_s = PROCESS_S + VARIANT_S + 2 * SLOW_CALL_S + reference_s
    assert seconds(alone, jit=SLOW) == pytest.approx(around_s + SLOW_COMPILE_S)
    assert seconds(both, jit=SLOW) == pytest.approx(around_s + 2 * SLOW_COMPILE_S)


def test_a_process_that_only_fills_the_cache_calls_nothing():
    refill = process("check", "f:jit", probe="numerics", refills=True)

    assert seconds(refill, jit=SLOW) == pytest.approx(PROCESS_S + SLOW_COMPILE_S)


@pytest.mark.parametrize(("cache_state", "compiles"), [("cold", 1), ("cached", LOADING), ("warm", 1), ("new_shape", 2)])
def test_a_cache_state_of_the_caches_compiles_as_often_as_it_says(cache_state, compiles):
    assert seconds(process("caching", "f:jit", cache_state=cache_state), jit=SLOW) == pytest.approx(
        PROCESS_S + compiles * SLOW_COMPILE_S + 2 * SLOW_CALL_S
    )


def test_a_quick_call_is_timed_in_all_its_blocks():
    loading_s = LOADING * compile_s(UNKNOWN, "jit")

    assert seconds(process("timing", "f:jit")) == pytest.approx(
        PROCESS_S + loading_s + TIMED_VARIANT_S + SETTINGS.blocks * SETTINGS.block_s
    )


@pytest.mark.parametrize(("one_s", "passes"), [(0.05, 6), (1.0, 2), (5.0, 2)])
def test_passes_of_slow_calls_are_cut(monkeypatch, one_s, passes):
    monkeypatch.setattr(module, "call_s", lambda work, mode: one_s)
    loading_s = LOADING * compile_s(UNKNOWN, "jit")

    found = seconds(process("timing", "f:jit"))

    assert found == pytest.approx(PROCESS_S + loading_s + (WARM_UP_CALLS + passes) * one_s)


def test_variants_that_alternate_share_the_time_of_their_passes(monkeypatch):
    monkeypatch.setattr(module, "call_s", lambda work, mode: 1.0 if mode == "eager" else 1e-6)
    alone = seconds(process("timing", "f:jit"))

    assert seconds(process("timing", "f:jit", "f:eager")) > alone + 6 * 1.0


# A budget


def test_a_budget_far_below_one_round_is_refused_with_what_it_needs():
    settings = make_settings("quick", suites=(), run_id="a")
    processes = plan_processes([case("s", "w[n=1]"), case("s", "w[n=2]")], settings)
    needed_s = first_round_s(processes, settings, {})

    check_budget(processes, settings, {}, math.nextafter(needed_s / 2, math.inf))
    with pytest.raises(UsageError) as caught:
        check_budget(processes, settings, {}, needed_s / 2.5)

    said = f"--budget {needed_s / 2.5:g}s is less than one round of 2 cases takes (about {needed_s:.0f} s); "
    assert str(caught.value) == f"{said}give more, or select fewer cases"


def test_where_nothing_is_left_to_do_any_budget_is_enough():
    check_budget([], SETTINGS, {}, 1.0)
