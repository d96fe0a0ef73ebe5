"""The list of processes: what each process of a run looks at, and in which order."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmeter.harness.machine.platforms import PLATFORMS
from jaxmeter.harness.plan.probes import CHECK, PROBES
from jaxmeter.harness.plan.processes import (
    SHAPES,
    PlannedProcess,
    plan_more,
    plan_processes,
    plan_processes_of,
    plan_refill,
)
from jaxmeter.harness.plan.settings import make_settings
from tests import samples

VARIANTS = ("a:eager", "a:jit", "a:aot", "numpy:native")


def planned(probes: tuple[str, ...] = (), *, where: str = "cpu", processes: int | None = 2, level="default", **changes):
    """(kind, round, cache state, looks) of each process of one case."""
    settings = make_settings(level, probes=probes, processes=processes, suites=(), run_id="a")
    case = msgspec.structs.replace(samples.planned_case(variants=VARIANTS, platform=where), **changes)
    return [
        (one.kind, one.round, one.cache_state, one.assignments)
        for one in plan_processes_of(case, settings, PLATFORMS[where])
    ]


def test_the_check_is_one_process_for_jax_and_one_for_peers_after_a_look_at_shapes():
    of_jax, compiled = ("a:eager", "a:jit", "a:aot"), ("a:jit", "a:aot")

    assert planned(("memory",))[:3] == [
        (SHAPES, 0, "", {"numerics": VARIANTS, "memory": compiled, "export": ("a:jit",)}),
        (CHECK, 0, "", {"numerics": of_jax, "memory": compiled, "export": ("a:jit",)}),
        (CHECK, 0, "", {"numerics": ("numpy:native",)}),
    ]


def test_cold_processes_come_in_rounds_over_the_variants_and_cache_states():
    found = planned(("caching",), answer=samples.ABOUT_COMPILING, new_shape={"n": 2})

    cache_states = ("cold", "cached", "warm", "new_shape")
    assert [one[1:3] for one in found if one[0] == "caching"] == [
        (index, one) for index in (0, 1) for one in cache_states
    ]


def test_a_timing_process_is_one_process_for_jax_and_one_for_each_peer():
    found = [(index, looks["timing"]) for kind, index, _, looks in planned(("timing",)) if kind == "timing"]

    assert sorted(found) == [
        (index, names) for index in (0, 1) for names in (("a:eager", "a:jit", "a:aot"), ("numpy:native",))
    ]


def test_a_peer_is_not_always_timed_after_jax():
    found = [looks["timing"] for kind, _, _, looks in planned(("timing",), processes=16) if kind == "timing"]

    firsts = set(found[::2])
    assert firsts == {("a:eager", "a:jit", "a:aot"), ("numpy:native",)}


CASES = [samples.planned_case(name, variants=VARIANTS) for name in ("selu", "matmul", "mlp", "cnn")]


def list_turns(processes) -> list[tuple[int, str]]:
    """Round and case of processes in a row."""
    turns = [(one.round, one.case) for one in processes]
    return [turn for index, turn in enumerate(turns) if index == 0 or turns[index - 1] != turn]


def test_the_first_process_of_every_case_comes_before_the_second_of_any():
    settings = make_settings("default", processes=3, suites=(), run_id="a")

    turns = list_turns(plan_processes(CASES, settings))

    assert [index for index, _ in turns] == [0] * 4 + [1] * 4 + [2] * 4
    assert all({case for at, case in turns if at == index} == {case.id for case in CASES} for index in range(3))


def test_each_round_has_an_order_of_its_own():
    settings = make_settings("default", processes=8, suites=(), run_id="a")

    turns = list_turns(plan_processes(CASES, settings))

    assert len({tuple(case for at, case in turns if at == index) for index in range(8)}) > 4


def test_only_what_jax_compiles_fills_the_cache():
    settings = make_settings("default", probes=("timing",), processes=3, suites=(), run_id="a")

    [refill] = plan_refill(CASES[0], plan_processes(CASES[:1], settings), 1)

    assert (refill.kind, refill.round, refill.refills) == (CHECK, 1, True)
    assert refill.variants == ("a:eager", "a:jit", "a:aot")


def test_one_more_process_of_a_case_is_its_timing_alone():
    settings = make_settings("default", suites=(), run_id="a")

    more = plan_more(CASES[0], settings, PLATFORMS["cpu"], 9)

    assert sorted((one.kind, one.round, one.variants) for one in more) == [
        ("timing", 9, ("a:eager", "a:jit", "a:aot")),
        ("timing", 9, ("numpy:native",)),
    ]


TRACED_TOO = (
    samples.planned_variant("a:jit"),
    samples.planned_variant("b:jit", skip="too long"),
    samples.planned_variant("c:jit", skip="too long", traced=True),
)


@pytest.mark.parametrize(
    ("probes", "platform", "traced"),
    [
        ((), PLATFORMS["cpu"], [("c:jit",)]),
        (("timing",), PLATFORMS["cpu"], []),
        ((), samples.target("gpu:made-up"), []),
    ],
    ids=["where programs are looked at", "not asked for", "not for a target"],
)
def test_what_is_skipped_may_be_traced_in_a_process_of_its_own(probes, platform, traced):
    case = samples.planned_case(variants=TRACED_TOO)
    settings = make_settings("default", probes=probes, suites=(), run_id="a")

    processes = list(plan_processes_of(case, settings, platform))

    found = [one for one in processes if "c:jit" in one.variants]
    assert [one.variants for one in found] == traced
    assert {(one.kind, one.probes, one.round) for one in found} <= {(SHAPES, ("compilation",), 0)}
    assert not [one for one in processes if "b:jit" in one.variants]


def test_processes_come_in_the_order_of_the_table():
    settings = make_settings("full", suites=(), run_id="a")
    case = samples.planned_case(variants=VARIANTS, answer=samples.ABOUT_COMPILING, represents_workload=True)

    processes = dict.fromkeys(one.kind for one in plan_processes([case], settings))

    assert list(processes) == [SHAPES, *dict.fromkeys(probe.process for probe in PROBES.values())]


def test_a_probe_that_looks_at_nothing_of_a_case_has_no_process():
    assert "trace" not in {
        one[0] for one in planned(("timing", "trace"), variants=(samples.planned_variant("x:native"),))
    }


@pytest.mark.parametrize(("processes", "extra"), [(None, [False] * 3 + [True] * 9), (5, [False] * 5)])
def test_rounds_after_the_fewest_that_give_an_interval_are_extra_unless_their_number_is_fixed(processes, extra):
    settings = make_settings("default", probes=("timing",), processes=processes, suites=(), run_id="a")
    case = samples.planned_case(variants=("a:jit",))

    assert [one.extra for one in plan_processes([case], settings) if one.kind == "timing"] == extra


@given(seed=st.integers(0, 2**32 - 1))
def test_the_seed_decides_the_order_of_cases_and_of_their_libraries_and_nothing_else(seed):
    settings = make_settings("quick", suites=(), run_id="a")
    cases = [samples.planned_case(name, variants=VARIANTS) for name in ("selu", "matmul", "mlp")]

    usual, other = (
        plan_processes(cases, msgspec.structs.replace(settings, seed=number)) for number in (settings.seed, seed)
    )

    assert sorted(usual, key=repr) == sorted(other, key=repr)
    for case in cases:
        assert sorted((one for one in usual if one.case == case.id), key=repr) == sorted(
            (one for one in other if one.case == case.id), key=repr
        )


def test_a_target_has_only_what_can_be_told_without_a_call():
    target = samples.target("gpu:made-up")
    settings = make_settings("full", processes=1, suites=(), run_id="a")
    case = samples.planned_case(variants=VARIANTS, platform=target.name, represents_workload=True)

    found = plan_processes([case], settings, platforms={target.name: target})

    assert [(one.kind, one.assignments) for one in found] == [
        (CHECK, {"memory": ("a:jit", "a:aot")}),
        *(("compilation", {"compilation": (name,)}) for name in ("a:jit", "a:aot")),
    ]


def test_a_process_is_limited_to_some_of_its_variants_and_to_the_probes_that_look_at_them():
    process = PlannedProcess(case="a", kind=CHECK, assignments={"numerics": ("f:eager", "f:jit"), "memory": ("f:jit",)})

    assert (process.probes, process.variants) == (("numerics", "memory"), ("f:eager", "f:jit"))
    assert process.limit_to(("f:eager",)).assignments == {"numerics": ("f:eager",)}
    assert process.limit_to(("f:jit", "f:eager")) == process
