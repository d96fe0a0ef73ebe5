import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmeter.harness.machine.platforms import PLATFORMS
from jaxmeter.harness.parent.prepare_run import SURELY_TOO_SMALL, UsageError, check_budget
from jaxmeter.harness.plan.probes import PROBE_NAMES, PROBES
from jaxmeter.harness.plan.processes import AROUND_BLOCK_S, PlannedProcess, plan_processes, share_passes
from jaxmeter.harness.plan.settings import PROCESS_S, estimate, first_round_s, make_settings, process_s
from jaxmeter.harness.record import PlannedCase
from jaxmeter.harness.record.files import name_file
from tests import samples

LEVELS = ("quick", "default", "full")
SETTINGS = make_settings("default", budget_s=1e9, suites=(), run_id="a")


def case(suite: str, name: str, variants: tuple = ("a:jit",)) -> PlannedCase:
    return samples.planned_case(name.partition("[")[0], suite=suite, name=name, id=name_file(name), variants=variants)


def process(kind: str, *variants: str, **options) -> PlannedProcess:
    return PlannedProcess(case="c", kind=kind, assignments={options.pop("probe", kind): variants}, **options)


def seconds(one: PlannedProcess) -> float:
    return process_s(one, SETTINGS)


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

    found = estimate(plan_processes(cases, settings), settings)

    assert 0 <= found.least_s <= found.most_s <= settings.budget_s


def test_more_processes_cases_or_variants_take_longer():
    def least(count: int, processes: int, variants: tuple[str, ...]) -> float:
        settings = make_settings("full", processes=processes, suites=(), run_id="a")
        cases = [case("s", f"w[n={number}]", variants) for number in range(count)]
        return estimate(plan_processes(cases, settings), settings).least_s

    assert least(1, 5, ("a:jit",)) < least(2, 5, ("a:jit",))
    assert least(1, 5, ("a:jit",)) < least(1, 8, ("a:jit",))
    assert least(1, 5, ("a:jit",)) < least(1, 5, ("a:jit", "b:jit"))
    assert least(0, 5, ()) == 0


def test_the_least_is_without_what_is_left_out_where_time_is_short():
    kept, extra = process("timing", "f:jit"), process("timing", "f:jit", round=3, extra=True)

    found = estimate([kept, extra], SETTINGS)

    assert (found.fewest, found.most) == (1, 2)
    assert found.least_s == seconds(kept)
    assert found.most_s == pytest.approx(2 * found.least_s)


def test_the_first_round_is_every_process_of_it():
    first, second = process("timing", "f:jit"), process("timing", "f:jit", round=1)

    assert first_round_s([first, first, second], SETTINGS) == 2 * seconds(first)


@pytest.mark.parametrize("name", [name for name, probe in PROBES.items() if not probe.keeps_samples])
def test_a_process_takes_what_the_rows_of_its_probes_say(name):
    probe = PROBES[name]

    assert seconds(process(probe.process, "f:jit", "f:eager", probe=name)) == pytest.approx(
        PROCESS_S + 2 * probe.variant_s
    )


def test_probes_that_share_a_process_begin_it_once():
    alone = [process("check", "f:jit", probe=probe) for probe in ("numerics", "memory")]
    both = msgspec.structs.replace(alone[0], assignments={"numerics": ("f:jit",), "memory": ("f:jit",)})

    assert seconds(both) == pytest.approx(sum(map(seconds, alone)) - PROCESS_S)


@pytest.mark.parametrize("changes", [{"blocks": 40}, {"block_s": 0.02, "blocks": 10}])
def test_a_timing_process_takes_as_many_passes_as_pay_and_no_more_than_the_settings_have(changes):
    settings = msgspec.structs.replace(SETTINGS, **changes)
    before_s = PROCESS_S + 2 * PROBES["timing"].variant_s
    passes = min(settings.blocks, share_passes([settings.block_s] * 2, before_s))

    assert process_s(process("timing", "f:jit", "numpy:native"), settings) == pytest.approx(
        before_s + passes * 2 * (settings.block_s + AROUND_BLOCK_S)
    )


@pytest.mark.parametrize("kind", ["timing", "check", "shapes"])
def test_a_process_takes_as_much_longer_as_its_devices_take_to_begin(kind):
    host, other = (process(kind, "f:jit", probe="numerics", begins_s=begins_s) for begins_s in (0.0, 0.6))

    assert seconds(other) - seconds(host) == pytest.approx(0.6)


def test_every_process_of_a_platform_takes_what_its_row_says():
    settings = make_settings("default", probes=tuple(PROBE_NAMES), suites=(), run_id="a")
    gpu = msgspec.structs.replace(
        case("s", "w[n=1]", ("a:jit", "numpy:native")), platform="gpu", represents_workload=True
    )
    platform = PLATFORMS["gpu"]

    begins_s = {one.kind: one.begins_s for one in plan_processes([gpu], settings)}

    assert 0 < platform.begins_s == begins_s["timing"] == begins_s["check"] == begins_s["shapes"]
    assert begins_s["measured_memory"] == platform.begins_s + platform.ahead_s > platform.begins_s


# A budget


def test_a_budget_far_below_one_round_is_refused_with_what_it_needs():
    settings = make_settings("quick", suites=(), run_id="a")
    processes = plan_processes([case("s", "w[n=1]"), case("s", "w[n=2]")], settings)
    needed_s = first_round_s(processes, settings)
    too_small_s = SURELY_TOO_SMALL * needed_s / 1.25

    check_budget(processes, settings, math.nextafter(SURELY_TOO_SMALL * needed_s, math.inf))
    with pytest.raises(UsageError) as caught:
        check_budget(processes, settings, too_small_s)

    said = f"--budget {too_small_s:g}s is less than one round of 2 cases takes (about {needed_s:.0f} s); "
    assert str(caught.value) == f"{said}give more, or select fewer cases"


def test_where_nothing_is_left_to_do_any_budget_is_enough():
    check_budget([], SETTINGS, 1.0)
