import re

from hypothesis import given
from hypothesis import strategies as st

from jaxmeter import (
    Caching,
    Cost,
    DataSource,
    Figure,
    Items,
    Needs,
    Published,
    Skip,
    State,
    levels,
    no_reference,
    workload,
)
from jaxmeter.harness.machine.platforms import PLATFORMS
from jaxmeter.harness.plan.cases import name_case, plan_case
from jaxmeter.harness.plan.probes import list_of_jax, list_runnable
from jaxmeter.harness.record.files import name_file
from tests import samples

CPU = PLATFORMS["cpu"]
SETTINGS = samples.settings()

# Names


@given(params=st.dictionaries(st.text("abc", min_size=1), st.integers() | st.booleans(), min_size=1), data=st.data())
def test_a_cases_name_does_not_depend_on_the_order_of_its_params(params, data):
    mixed = dict(data.draw(st.permutations(list(params.items()))))

    assert name_case("selu", mixed, CPU) == name_case("selu", params, CPU)


def test_a_cases_name_is_the_workload_with_params_in_order_and_its_id_is_readable():
    assert name_case("selu", {"n": 10_000, "dtype": "float32"}, CPU) == "selu[dtype=float32,n=10000]"
    assert name_case("selu", {}, CPU) == "selu"
    assert re.fullmatch(r"selu-dtype=float32-n=10000-[0-9a-f]{8}", name_file("selu[dtype=float32,n=10000]"))


@given(name=st.text())
def test_a_cases_id_is_a_safe_name_of_a_folder(name):
    found = name_file(name)

    assert re.fullmatch(r"[A-Za-z0-9=._-]+", found)
    assert found not in (".", "..")
    assert len(found) <= 89
    assert name_file(name) == found


@given(names=st.sets(st.text(), min_size=2, max_size=30))
def test_unlike_names_have_unlike_ids(names):
    assert len({name_file(name).lower() for name in names}) == len(names)


def test_names_that_differ_in_signs_case_or_only_at_their_end_have_unlike_ids():
    long = "x" * 200
    names = ["selu[n=1]", "selu(n=1)", "selu n=1", "SELU[n=1]", long + "1", long + "2"]

    assert len({name_file(name).lower() for name in names}) == len(names)


# The plan


@workload(
    inputs=lambda key, *, n: None,
    params={"n": levels(quick=4)},
    reference=no_reference("it is random"),
    cost=lambda n: Cost(flops=n),
    items=Items("draws", lambda *, n: 2 * n),
    peers={"numpy": len},
    modes=("jit",),
    limit=lambda n: Skip("too small") if n < 10 else None,
    time_limit_s=7.0,
    compiles=2,
    caching=Caching(new_shape=lambda *, n: {"n": n + 1}, default_threshold=True),
    queued=8,
    measures="compilation",
)
def sampled(x):
    """Draws."""
    return x


@sampled.implementation(modes=("eager", "aot"))
def other(x):
    """Draws otherwise."""
    return -x


def test_a_planned_case_says_all_that_the_workload_declares():
    planned = plan_case("random", sampled, {"n": 4}, CPU)

    assert (planned.name, planned.suite, planned.workload) == ("sampled[n=4]", "random", "sampled")
    assert (planned.id, planned.params, planned.description) == (name_file("sampled[n=4]"), {"n": 4}, "Draws.")
    assert (planned.cost, planned.items, planned.items_unit) == (Cost(flops=4), 8, "draws")
    assert (planned.no_reference, planned.baseline) == ("it is random", "sampled:jit")
    assert (planned.time_limit_s, planned.queued, planned.measures) == (7.0, 8, "compilation")
    assert (planned.new_shape, planned.new_static, planned.represents_workload) == ({"n": 5}, None, True)
    assert planned.default_threshold
    assert [(one.name, one.skip, one.compiles) for one in planned.variants] == [
        ("sampled:jit", "too small", 2),
        *((name, None, None) for name in ("numpy:native", "other:eager", "other:aot")),
    ]


def test_what_is_skipped_is_not_run():
    planned = plan_case("random", sampled, {"n": 4}, CPU)

    assert [item.name for item in list_runnable(planned, SETTINGS)] == ["numpy:native", "other:eager", "other:aot"]
    assert [item.name for item in list_of_jax(planned, SETTINGS)] == ["other:eager", "other:aot"]


def test_modes_of_one_implementation_share_its_source_and_others_do_not():
    first, peer, eager, aot = plan_case("random", sampled, {"n": 4}, CPU).variants

    assert eager.source == aot.source
    assert len({first.source, peer.source, eager.source}) == 3


def test_a_plan_says_which_files_the_folder_of_data_lacks_and_the_definition_is_that_of_the_data():
    made = {
        name: workload(inputs=lambda key: 1, reference=no_reference("none"), data=lambda found=found: found)(step)
        for name, found in {"told": DataSource("noise", "a.txt"), "same": DataSource("noise"), "text": "noise"}.items()
    }

    cases = {name: plan_case("some", declared, {}, CPU) for name, declared in made.items()}

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

    four, five = (plan_case("sharded", declared, {"n": n}, CPU) for n in (4, 5))

    assert (four.devices, four.config, four.data) == (4, {"jax_enable_x64": True}, "digits")
    assert (four.published, five.published) == ((claim,), ())
    assert [item.donates for item in four.variants] == [(), ("state",), ("state",), ()]
    assert [item.raises for item in four.variants] == [None, None, None, "TypeError"]


def step(state, batch):
    return state, batch


def refused(state, batch):
    return state, batch


def test_a_case_says_where_it_runs_and_only_a_targets_name_is_part_of_its_own():
    target = samples.target("tpu:made-up")

    here, compiled = (plan_case("random", sampled, {"n": 4}, platform) for platform in (CPU, target))

    assert (here.platform, here.name) == ("cpu", "sampled[n=4]")
    assert (compiled.platform, compiled.name) == ("tpu:made-up", "sampled[n=4]@tpu:made-up")
    assert here.id != compiled.id
    assert name_case("selu", {}, target) == "selu@tpu:made-up"


def test_what_is_skipped_may_be_traced_where_it_is_one_program():
    def f(x):
        return x

    declared = workload(inputs=len, reference=len, limit=lambda: Skip("too long", traced=True))(f)

    assert {one.mode: one.traced for one in plan_case("s", declared, {}, CPU).variants} == {
        "eager": False,
        "jit": True,
        "aot": True,
    }
