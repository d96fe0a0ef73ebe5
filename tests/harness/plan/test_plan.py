import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import Caching, Cost, DataSource, Figure, Needs, Published, Skip, State, levels, no_reference, workload
from harness.plan.cases import (
    LOOKS,
    PROBE_NAMES,
    QUICK_LOOKS,
    SelectionError,
    cached_variants,
    called_variants,
    case_id,
    case_name,
    estimate,
    jax_variants,
    peer_variants,
    planned_case,
    regimes,
    select,
    settings_for,
    shuffled,
    traced_variants,
    with_representatives,
)
from harness.probes.caching import REGIMES
from harness.record import PlannedCase
from tests import samples

LEVELS = ("quick", "default", "full")


def case(suite: str, name: str, variants: tuple = ("a:jit",)) -> PlannedCase:
    return samples.planned_case(name.partition("[")[0], suite=suite, name=name, id=case_id(name), variants=variants)


CASES = (
    case("selu", "selu[dtype=float32,n=10]"),
    case("selu", "selu[dtype=bfloat16,n=10]"),
    case("matmul", "matmul[n=10]"),
    case("matmul", "matmul[n=100]"),
    case("matmul", "matmul_int32[n=10]"),
)


def chosen(*patterns: str) -> list[str]:
    return [one.name for one in select(CASES, patterns)]


# Names


@given(params=st.dictionaries(st.text("abc", min_size=1), st.integers() | st.booleans(), min_size=1), data=st.data())
def test_a_cases_name_does_not_depend_on_the_order_of_its_params(params, data):
    mixed = dict(data.draw(st.permutations(list(params.items()))))

    assert case_name("selu", mixed) == case_name("selu", params)


def test_a_cases_name_is_the_workload_with_params_in_order():
    assert case_name("selu", {"n": 10_000, "dtype": "float32"}) == "selu[dtype=float32,n=10000]"
    assert case_name("selu", {}) == "selu"


def test_a_cases_id_is_readable():
    assert re.fullmatch(r"selu-dtype=float32-n=10000-[0-9a-f]{8}", case_id("selu[dtype=float32,n=10000]"))


@given(name=st.text())
def test_a_cases_id_is_a_safe_name_of_a_folder(name):
    found = case_id(name)

    assert re.fullmatch(r"[A-Za-z0-9=._-]+", found)
    assert found not in (".", "..")
    assert len(found) <= 89
    assert case_id(name) == found


@given(names=st.sets(st.text(), min_size=2, max_size=30))
def test_unlike_names_have_unlike_ids(names):
    assert len({case_id(name).lower() for name in names}) == len(names)


def test_names_that_differ_in_signs_case_or_only_at_their_end_have_unlike_ids():
    long = "x" * 200
    names = ["selu[n=1]", "selu(n=1)", "selu n=1", "SELU[n=1]", long + "1", long + "2"]

    assert len({case_id(name).lower() for name in names}) == len(names)


# Choosing


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("selu", ["selu[dtype=float32,n=10]", "selu[dtype=bfloat16,n=10]"]),
        ("matmul[n=10]", ["matmul[n=10]"]),
        ("matmul[n=10*]", ["matmul[n=10]", "matmul[n=100]"]),
        ("matmul*[n=10]", ["matmul[n=10]", "matmul_int32[n=10]"]),
        ("*n=10?]", ["matmul[n=100]"]),
        ("matmul", ["matmul[n=10]", "matmul[n=100]", "matmul_int32[n=10]"]),
        ("matmul_int??", ["matmul_int32[n=10]"]),
        ("*[dtype=float32*", ["selu[dtype=float32,n=10]"]),
    ],
)
def test_a_pattern_stands_for_a_suite_a_workload_or_a_whole_name(pattern, expected):
    assert chosen(pattern) == expected


@pytest.mark.parametrize("pattern", ["[sm]*", "matmul[[]n=10]", "selu.*", "matmul[n=1", "SELU", ""])
def test_only_star_and_question_mark_mean_more_than_themselves(pattern):
    with pytest.raises(SelectionError):
        chosen(pattern)


def test_without_patterns_every_case_is_chosen():
    assert chosen() == [one.name for one in CASES]


def test_chosen_cases_keep_their_order_and_come_once():
    assert chosen("matmul[n=10]", "selu", "*n=10]") == chosen("*n=10]")


def test_a_pattern_that_matches_nothing_names_the_nearest_and_the_list():
    with pytest.raises(SelectionError) as caught:
        chosen("selu", "matmull")

    assert (
        str(caught.value) == "no case matches --select 'matmull'; nearest: 'matmul'; list all: python -m harness list"
    )


def test_where_nothing_is_near_only_the_list_is_named():
    with pytest.raises(SelectionError) as caught:
        chosen("zzzzzzzz")

    assert str(caught.value) == "no case matches --select 'zzzzzzzz'; list all: python -m harness list"


# Order


@given(seed=st.integers(0, 2**32))
def test_cases_run_in_a_random_order_that_the_seed_decides(seed):
    order = shuffled(CASES, seed)

    assert sorted(one.id for one in order) == sorted(one.id for one in CASES)
    assert order == shuffled(CASES, seed)


def test_another_seed_gives_another_order():
    orders = {tuple(one.id for one in shuffled(CASES, seed)) for seed in range(10)}

    assert len(orders) > 5


# Settings


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_decides_how_long_a_run_takes(level):
    found = settings_for(level, suites=("suites",), run_id="a")

    assert found.level == level
    assert found.probes == tuple(name for name in PROBE_NAMES if level != "quick" or name != "caching")
    assert found.looks == (QUICK_LOOKS if level == "quick" else LOOKS)
    assert found.launches is None
    assert found.case_limit_s < found.budget_s


def test_a_fixed_count_of_launches_is_the_only_look():
    found = settings_for("default", launches=4, suites=(), run_id="a")

    assert (found.launches, found.looks) == (4, (4,))


def test_numerics_is_always_among_the_probes_and_first():
    assert settings_for("quick", probes=("timing", "memory"), suites=(), run_id="a").probes == (
        "numerics",
        "memory",
        "timing",
    )


def test_a_budget_replaces_the_levels_own_and_may_be_zero():
    assert settings_for("quick", budget_s=7.5, suites=(), run_id="a").budget_s == 7.5
    assert settings_for("quick", budget_s=0.0, suites=(), run_id="a").budget_s == 0.0


def test_the_run_id_decides_the_seed():
    first, again, other = (settings_for("quick", suites=(), run_id=name).seed for name in ("a", "a", "b"))

    assert first == again != other


# The plan


@workload(
    inputs=lambda key, *, n: None,
    params={"n": levels(quick=4)},
    reference=no_reference("it is random"),
    cost=lambda n: Cost(flops=n),
    peers={"numpy": len},
    modes=("jit",),
    limit=lambda n: Skip("too small") if n < 10 else None,
    time_limit_s=7.0,
    compiles=2,
    caching=Caching(new_shape=lambda *, n: {"n": n + 1}),
)
def sampled(x):
    """Draws."""
    return x


@sampled.implementation(modes=("eager", "aot"))
def other(x):
    """Draws otherwise."""
    return -x


def test_a_planned_case_says_all_that_the_workload_declares():
    planned = planned_case("random", sampled, {"n": 4}, "cpu")

    assert (planned.name, planned.suite, planned.workload) == ("sampled[n=4]", "random", "sampled")
    assert planned.id == case_id("sampled[n=4]")
    assert planned.params == {"n": 4}
    assert planned.description == "Draws."
    assert planned.cost == Cost(flops=4)
    assert planned.no_reference == "it is random"
    assert planned.time_limit_s == 7.0
    assert planned.baseline == "sampled:jit"
    assert (planned.new_shape, planned.new_static, planned.representative) == ({"n": 5}, None, True)
    assert [one.compiles for one in planned.variants] == [2, None, None, None]
    assert [(one.name, one.skip) for one in planned.variants] == [
        ("sampled:jit", "too small"),
        ("numpy:native", None),
        ("other:eager", None),
        ("other:aot", None),
    ]


def test_what_is_skipped_is_not_run():
    planned = planned_case("random", sampled, {"n": 4}, "cpu")

    assert jax_variants(planned) == ("other:eager", "other:aot")
    assert peer_variants(planned) == ("numpy:native",)


def test_modes_of_one_implementation_share_its_source_and_others_do_not():
    first, peer, eager, aot = planned_case("random", sampled, {"n": 4}, "cpu").variants

    assert eager.source == aot.source
    assert len({first.source, peer.source, eager.source}) == 3


# Which cases and variants show the caches


def jitted(*, exemplary: bool) -> PlannedCase:
    planned = case("s", "w[n=1]", ("a:jit", "b:eager", "numpy:native", "a:aot"))
    return msgspec.structs.replace(planned, exemplary=exemplary)


@pytest.mark.parametrize(
    ("probes", "exemplary", "expected"),
    [
        ((), True, ("a:jit",)),
        ((), False, ()),
        (("caching",), False, ("a:jit",)),
        (("timing",), True, ()),
    ],
)
def test_caches_are_looked_at_in_one_case_of_each_suite_or_in_all_if_asked(probes, exemplary, expected):
    settings = settings_for("default", probes=probes, suites=(), run_id="a")

    assert cached_variants(jitted(exemplary=exemplary), settings) == expected


@pytest.mark.parametrize(
    ("level", "probes", "representative", "expected"),
    [
        ("default", (), True, ("f:jit",)),
        ("default", (), False, ()),
        ("default", ("trace",), False, ("f:jit",)),
        ("full", (), False, ("f:jit",)),
        ("full", ("timing",), True, ()),
    ],
)
def test_one_case_of_each_workload_is_traced_or_all_if_asked(level, probes, representative, expected):
    case = samples.planned_case(variants=("f:jit",), representative=representative)

    assert traced_variants(case, settings_for(level, probes=probes, suites=(), run_id="a")) == expected


def test_one_case_stands_for_each_suite_the_first_of_those_that_stand_for_a_workload():
    cases = [
        samples.planned_case(workload, id=f"{workload}{n}", suite=suite, representative=n == 2)
        for workload, suite in (("a", "s"), ("b", "s"), ("c", "t"))
        for n in (1, 2)
    ]

    found = with_representatives(cases)

    assert [one.id for one in found if one.representative] == ["a2", "b2", "c2"]
    assert [one.id for one in found if one.exemplary] == ["a2", "c2"]
    assert [one.id for one in with_representatives(cases[2:]) if one.exemplary] == ["b2", "c2"]


def test_only_what_a_workload_names_is_tried_as_new():
    planned = case("s", "w[n=1]", ("a:jit",))

    assert regimes(planned) == ("cold", "cached", "warm")
    assert regimes(msgspec.structs.replace(planned, new_static={"n": 2})) == ("cold", "cached", "warm", "new_static")


def test_every_regime_that_a_plan_names_is_known():
    planned = msgspec.structs.replace(case("s", "w[n=1]", ("a:jit",)), new_shape={"n": 2}, new_static={"n": 2})

    assert regimes(planned) == tuple(REGIMES)


# The estimate

variants = st.lists(st.sampled_from(["a:jit", "b:eager", "numpy:native"]), min_size=1, unique=True).map(tuple)


@given(
    variants=st.lists(variants, max_size=4),
    level=st.sampled_from(LEVELS),
    probes=st.sets(st.sampled_from(PROBE_NAMES)),
    budget_s=st.none() | st.floats(0, 1000),
)
def test_a_plan_takes_between_its_least_and_its_most_and_never_more_than_the_budget(variants, level, probes, budget_s):
    settings = settings_for(level, probes=tuple(probes), budget_s=budget_s, suites=(), run_id="a")
    cases = [case("s", f"w[n={number}]", names) for number, names in enumerate(variants)]

    found = estimate(cases, settings)

    assert 0 <= found.least_s <= found.most_s <= settings.budget_s


def test_more_launches_cases_or_variants_take_longer():
    def least(count: int, launches: int, variants: tuple[str, ...]) -> float:
        settings = settings_for("full", launches=launches, suites=(), run_id="a")
        return estimate([case("s", f"w[n={number}]", variants) for number in range(count)], settings).least_s

    assert least(1, 5, ("a:jit",)) < least(2, 5, ("a:jit",))
    assert least(1, 5, ("a:jit",)) < least(1, 8, ("a:jit",))
    assert least(1, 5, ("a:jit",)) < least(1, 5, ("a:jit", "b:jit"))
    assert least(0, 5, ()) == 0


def test_a_plan_says_which_files_the_folder_of_data_lacks_and_the_definition_is_that_of_the_data():
    made = {
        name: workload(inputs=lambda key: 1, reference=no_reference("none"), data=lambda found=found: found)(step)
        for name, found in {"told": DataSource("noise", "a.txt"), "same": DataSource("noise"), "text": "noise"}.items()
    }

    cases = {name: planned_case("some", declared, {}, "cpu") for name, declared in made.items()}

    assert {name: case.data for name, case in cases.items()} == {"told": "noise", "same": "noise", "text": "noise"}
    assert {name: case.data_missing for name, case in cases.items()} == {"told": "a.txt", "same": None, "text": None}
    assert len({case.definition for case in cases.values()}) == 1


def test_a_plan_says_what_processes_are_set_to_and_what_stands_beside():
    claim = Published(source="a book", device="a GPU", timed="a call", figure=Figure("step:jit", 1.0), at={"n": 4})
    declared = workload(
        inputs=lambda key, *, n: (n, n),
        reference=no_reference("none"),
        params={"n": (4, 5)},
        state=State(carry={"state": 0}, donate=("state",)),
        needs=Needs(devices=lambda *, n: n, config={"jax_enable_x64": True}),
        data=lambda: "digits",
        published=(claim,),
    )(step)
    declared.implementation(refused, raises=TypeError, modes=("jit",))

    four, five = (planned_case("sharded", declared, {"n": n}, "cpu") for n in (4, 5))

    assert (four.devices, four.config, four.data) == (4, {"jax_enable_x64": True}, "digits")
    assert (four.published, five.published) == ((claim,), ())
    assert [item.donates for item in four.variants] == [(), ("state",), ("state",), ()]
    assert [item.raises for item in four.variants] == [None, None, None, "TypeError"]


def step(state, batch):
    return state, batch


def refused(state, batch):
    return state, batch


def test_what_raises_as_declared_is_checked_and_not_measured():
    erring = msgspec.structs.replace(samples.planned_variant("f:jit"), raises="TypeError")
    case = samples.planned_case(variants=(erring, samples.planned_variant("g:jit")))
    settings = settings_for("default", suites=(), run_id="it")

    assert jax_variants(case) == ("f:jit", "g:jit")
    assert called_variants(case) == ("g:jit",)
    assert cached_variants(msgspec.structs.replace(case, exemplary=True), settings) == ("g:jit",)


def test_what_donates_has_no_caching_regimes():
    donating = msgspec.structs.replace(samples.planned_variant("f:jit"), donates=("state",))
    case = samples.planned_case(variants=(donating, samples.planned_variant("g:jit")))

    everywhere = settings_for("default", probes=("caching",), suites=(), run_id="it")

    assert cached_variants(case, everywhere) == ("g:jit",)
