import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import (
    Cost,
    DeclarationError,
    Figure,
    Peer,
    Published,
    Skip,
    Workload,
    itemsize,
    no_reference,
    sizes,
    workload,
)
from harness.declare.levels import call_with

LEVELS = ("quick", "default", "full")

PARAMS = {"seq": (128, 256), "dtype": "float32"}


def inputs(key, *, seq, dtype):
    """Made up."""


def attention(x):
    """Weighted average, (seq,) -> (seq,)."""
    return x


def trusted(x):
    return x


def declare(**changes) -> Workload:
    """A workload of params seq and dtype, changed."""
    return workload(**{"inputs": inputs, "reference": trusted, "params": PARAMS, **changes})(attention)


def test_a_function_becomes_a_workload_with_its_name_and_first_line():
    declared = declare()

    assert declared.name == "attention"
    assert declared.description == "Weighted average, (seq,) -> (seq,)."
    assert declared.variants() == ("attention:eager", "attention:jit", "attention:aot")
    assert declared.baseline_variant == "attention:eager"


def test_a_workload_can_be_called_like_the_function():
    assert declare()(7) == 7


def test_further_implementations_and_peers_follow_the_first():
    declared = declare(peers={"numpy": lambda x: x}, modes=("jit",), implementation="plain")

    @declared.implementation
    def scan(x):
        """By steps."""

    @declared.implementation(name="loop", modes=("eager", "jit"))
    def with_a_name(x):
        """By a loop."""

    assert declared.variants() == ("plain:jit", "numpy:native", "scan:jit", "loop:eager", "loop:jit")
    assert declared.variant("loop:jit") == (declared.implementations[3], "jit")
    assert [item.description for item in declared.implementations[2:]] == ["By steps.", "By a loop."]


# Names that do not fit


def misspelt_inputs(key, *, seq, heads):
    """Asks for a param that there is not."""


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"inputs": misspelt_inputs}, "inputs() asks for 'heads'"),
        ({"cost": lambda *, heads: Cost(flops=heads)}, "cost() asks for 'heads'"),
        ({"cost": lambda heads: Cost(flops=heads)}, "cost() asks for 'heads'"),
        ({"reference": lambda x, *, heads: x}, "reference() asks for 'heads'"),
        ({"limit": lambda heads: None}, "attention()'s limit asks for 'heads'"),
        ({"peers": {"numpy": lambda x, *, heads: x}}, "numpy() asks for 'heads'"),
        ({"peers": {"numpy": Peer(len, limit=lambda heads: None)}}, "numpy()'s limit asks for 'heads'"),
    ],
    ids=["inputs", "cost by keyword", "cost by position", "reference", "limit", "peer", "peer's limit"],
)
def test_a_param_that_does_not_exist_is_named_with_those_that_do(changes, said):
    with pytest.raises(DeclarationError) as caught:
        declare(**changes).check()

    assert str(caught.value) == f"workload 'attention': {said}, which params does not list; params has seq, dtype"


def test_an_implementations_param_that_does_not_exist_is_an_error_where_it_is_declared():
    declared = declare()

    with pytest.raises(DeclarationError, match=r"scan\(\) asks for 'heads', which params does not list"):

        @declared.implementation
        def scan(x, *, heads):
            """Not there."""


def test_without_params_the_error_says_so():
    with pytest.raises(DeclarationError, match="params has nothing"):
        declare(params=None).check()


def test_arguments_with_a_default_and_positional_ones_are_not_params():
    def with_options(key, *, seq, dtype, scale=1.0):
        """Its scale is its own."""

    declare(inputs=with_options, reference=lambda x, y=None: x, cost=lambda seq, digits=3: Cost()).check()


def test_an_implementation_name_is_given_once():
    declared = declare()

    with pytest.raises(DeclarationError, match="workload 'attention': the implementation name 'attention' is taken"):
        declared.implementation(attention)
    with pytest.raises(DeclarationError, match="the implementation name 'attention' is taken"):
        declare(peers={"attention": len})


def test_a_mode_that_does_not_exist_is_named_with_those_that_do():
    with pytest.raises(DeclarationError, match="workload 'attention': no mode 'jitted'; modes are eager, jit, aot"):
        declare(modes=("eager", "jitted"))


def test_a_baseline_that_does_not_exist_is_named_with_the_variants():
    declared = declare(baseline="scan:jit", modes=("jit",))

    with pytest.raises(DeclarationError) as caught:
        declared.check()
    assert str(caught.value) == (
        "workload 'attention': no variant 'scan:jit' to be the baseline; variants are attention:jit"
    )


def test_a_baseline_may_be_attached_after_the_workload():
    declared = declare(baseline="scan:jit", modes=("jit",))
    declared.implementation(lambda x: x, name="scan")

    declared.check()

    assert declared.baseline_variant == "scan:jit"


# Params and their values


def test_functions_get_the_params_that_they_ask_for():
    params = {"n": 3, "dtype": "float32"}

    assert call_with(lambda key, *, n: (key, n), params, "key") == ("key", 3)
    assert call_with(lambda *, dtype, n: (n, dtype), params) == (3, "float32")
    assert call_with(lambda n: n, params) == 3
    assert call_with(lambda: 1, params) == 1
    assert call_with(lambda n, digits=2: (n, digits), params) == (3, 2)


def test_a_limit_gives_the_reason_to_skip():
    declared = declare(limit=lambda seq: Skip("too long") if seq > 128 else None)
    (item,) = declared.implementations

    assert item.skip({"seq": 256, "dtype": "float32"}, "cpu") == Skip("too long")
    assert item.skip({"seq": 128, "dtype": "float32"}, "cpu") is None


def test_cases_are_every_combination_of_params():
    assert list(declare(params={"n": (1, 2), "dtype": ("a", "b")}).cases("quick", "cpu")) == [
        {"n": 1, "dtype": "a"},
        {"n": 1, "dtype": "b"},
        {"n": 2, "dtype": "a"},
        {"n": 2, "dtype": "b"},
    ]
    assert list(declare(params=None).cases("quick", "cpu")) == [{}]


def test_a_list_of_values_is_as_good_as_a_tuple():
    assert list(declare(params={"n": [1, 2]}).cases("quick", "cpu")) == [{"n": 1}, {"n": 2}]


def test_a_level_includes_the_levels_before_it():
    values = sizes(quick=30, default=(10, 20), full=40)

    assert [values.at(level, "cpu") for level in LEVELS] == [(30,), (10, 20, 30), (10, 20, 30, 40)]


def test_a_backend_adds_its_own_sizes_beyond_quick():
    values = sizes(quick=1, default=2, full=3, gpu=(5, 4), tpu=6)

    assert [values.at(level, "gpu") for level in LEVELS] == [(1,), (1, 2, 4, 5), (1, 2, 3, 4, 5)]
    assert values.at("default", "tpu") == (1, 2, 6)
    assert values.at("default", "cpu") == (1, 2)


numbers = st.lists(st.integers(0, 20), max_size=5).map(tuple)


@given(quick=numbers, default=numbers, full=numbers, gpu=numbers, backend=st.sampled_from(["cpu", "gpu", "tpu"]))
def test_sizes_are_in_order_without_repeats_and_grow_with_the_level(quick, default, full, gpu, backend):
    values = sizes(quick=quick, default=default, full=full, gpu=gpu)

    at = [values.at(level, backend) for level in LEVELS]

    assert all(list(one) == sorted(set(one)) for one in at)
    assert set(at[0]) <= set(at[1]) <= set(at[2])


def test_values_that_are_no_numbers_keep_their_order():
    assert sizes(quick=("float32", "bfloat16"), default=("bfloat16", "auto")).at("default", "cpu") == (
        "float32",
        "bfloat16",
        "auto",
    )


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("float32", 4), ("bfloat16", 2), ("float64", 8), ("int8", 1), ("complex64", 8), ("float8_e4m3fn", 1), ("bool", 1)],
)
def test_itemsize_is_the_bytes_of_one_element(dtype, expected):
    assert itemsize(dtype) == expected


# Identity


def test_a_definition_is_inputs_reference_and_cost_but_no_implementation():
    def cost(*, seq):
        return Cost(flops=seq)

    plain = declare(cost=cost)
    more = declare(cost=cost, implementation="first", peers={"numpy": len}, modes=("jit",), tolerance=0.1)

    assert plain.definition() == more.definition()
    assert plain.definition() != declare(cost=lambda *, seq: Cost(flops=2 * seq)).definition()
    assert plain.definition() != declare(cost=cost, inputs=lambda key, *, seq: None).definition()
    assert plain.definition() != declare(cost=cost, reference=lambda x: -x).definition()
    assert plain.definition() != declare(cost=cost, reference=no_reference("random")).definition()


# What a param may be, and who takes it


def test_a_param_with_a_default_is_passed_on_all_the_same():
    def scaled(x, *, scale=1):
        return scale * x

    assert call_with(scaled, {"scale": 3}, 2) == 6


def test_a_default_of_numpys_own_functions_is_no_param():
    assert call_with(np.matmul, {"dtype": "int64"}, np.eye(2), np.eye(2)).dtype == np.float64


def test_a_param_that_nobody_takes_is_an_error():
    @workload(inputs=lambda key: key, reference=no_reference("none"), params={"scale": (1, 2)})
    def identity(x):
        return x

    with pytest.raises(DeclarationError, match="takes the param 'scale'"):
        identity.check()


@pytest.mark.parametrize("value", [None, (8, 8), np.float32, object()])
def test_a_param_that_a_record_cannot_hold_is_an_error(value):
    with pytest.raises(DeclarationError, match="write a dtype as 'float32'"):
        sizes(quick=[value])


def test_numpy_numbers_and_ranges_are_values():
    assert sizes(quick=np.array([1, 2]), default=range(3, 5)).at("default", "cpu") == (1, 2, 3, 4)


def test_without_a_quick_size_the_first_of_the_next_level_stands_for_it():
    assert sizes(default=(5, 10)).at("quick", "cpu") == (5,)
    assert sizes(full=(7, 8)).at("default", "cpu") == (7,)


# What is expected of the compiler


def test_a_workloads_compile_budget_is_for_jit_and_an_implementations_own_for_all_its_modes_but_aot():
    declared = declare(compiles=lambda *, seq: seq // 64)

    @declared.implementation(compiles=2)
    def by_hand(x):
        """With jits of its own."""

    params = {"seq": 128, "dtype": "float32"}
    assert {name: declared.compile_budget(name, params) for name in declared.variants()} == {
        "attention:eager": None,
        "attention:jit": 2,
        "attention:aot": None,
        "by_hand:eager": 2,
        "by_hand:jit": 2,
        "by_hand:aot": None,
    }
    assert declared.compile_budget("attention:jit", {"seq": 256, "dtype": "float32"}) == 4


def test_without_a_declaration_there_is_no_compile_budget():
    assert declare().compile_budget("attention:jit", {"seq": 128, "dtype": "float32"}) is None


def test_a_stream_runs_eager_and_jitted():
    assert declare(stream=True).variants() == ("attention:eager", "attention:jit")


def test_a_stream_has_no_ahead_of_time_program():
    with pytest.raises(DeclarationError, match=r"a stream cannot run in mode 'aot'.*modes are eager, jit"):
        declare(stream=True, modes=("jit", "aot"))


@pytest.mark.parametrize("declared", [{"seq": 300}, lambda *, seq: {"seq": 2 * seq + 44}])
def test_something_new_is_given_by_params_or_a_function_of_them(declared):
    workload = declare(new_shape=declared)

    assert workload.alternative(workload.new_shape, {"seq": 128, "dtype": "float32"}) == {"seq": 300}


def test_something_new_must_be_a_param():
    with pytest.raises(DeclarationError, match="new_shape names 'heads', which params does not list"):
        declare(new_shape={"heads": 8}).check()


def test_what_a_function_names_as_new_must_be_a_param_too():
    workload = declare(new_shape=lambda *, seq: {"heads": seq})

    with pytest.raises(DeclarationError, match="to be tried as new names 'heads'"):
        workload.alternative(workload.new_shape, {"seq": 128, "dtype": "float32"})


def test_a_value_that_the_case_has_is_tried_all_the_same_so_that_the_probe_can_say_so():
    workload = declare(new_shape={"seq": 128})

    assert workload.alternative(workload.new_shape, {"seq": 128, "dtype": "float32"}) == {"seq": 128}


def test_a_compile_budget_needs_something_that_it_counts():
    with pytest.raises(DeclarationError, match="compiles= counts what its jit variants compile, and it has none"):
        declare(compiles=1, modes=("eager",)).check()


def test_a_compile_budget_asks_for_params_that_exist():
    with pytest.raises(DeclarationError, match="compiles\\(\\) asks for 'heads'"):
        declare(compiles=lambda *, heads: heads).check()


def test_a_param_with_sizes_for_one_backend_alone_has_a_first_value_too():
    declared = declare(params={"seq": sizes(gpu=(64, 128)), "dtype": "float32"})

    assert declared.is_representative({"seq": 64, "dtype": "float32"})


def test_a_function_that_tells_what_is_new_gets_params_that_exist():
    with pytest.raises(DeclarationError, match="new_shape\\(\\) asks for 'heads'"):
        declare(new_shape=lambda *, heads: {"seq": heads}).check()


def test_one_case_stands_for_its_workload_the_first_values_unless_declared():
    by_itself, declared = declare(), declare(representative={"seq": 256})

    assert [one.is_representative(params) for one in (by_itself, declared) for params in one.cases("quick", "cpu")] == [
        *(True, False),
        *(False, True),
    ]


def test_a_representative_must_be_of_params_that_exist():
    with pytest.raises(DeclarationError, match="representative names 'heads', which params does not list"):
        declare(representative={"heads": 8}).check()


# State, places, processes


def published(**changes) -> Published:
    return Published(
        **{"source": "a book", "device": "a GPU", "timed": "a call", "figure": Figure("attention:jit", 1.0), **changes}
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"carry": {"y": 0}}, "carry names the argument 'y', which attention() does not have; it has x"),
        ({"host": ("y",)}, "host names the argument 'y', which attention() does not have; it has x"),
        ({"devices": lambda *, heads: heads}, "devices() asks for 'heads', which params does not list"),
        (
            {"config": lambda *, heads: {"jax_enable_x64": heads}},
            "config() asks for 'heads', which params does not list",
        ),
        (
            {"published": (published(figure=Figure("scan:jit", 1.0)),)},
            "no variant 'scan:jit' to be published; variants are attention:eager, attention:jit, attention:aot",
        ),
        (
            {"published": (published(against=Figure("scan:jit", 1.0)),)},
            "no variant 'scan:jit' to be published; variants are attention:eager, attention:jit, attention:aot",
        ),
        ({"published": (published(figure=Figure("attention:jit", 1.0, metric="speed")),)}, "no metric 'speed' to be"),
        ({"published": (published(at={"heads": 1}),)}, "published at a book names 'heads', which params does not list"),
        ({"published": (published(at={"backend": "cuda"}),)}, "published at backend 'cuda', which there is not"),
        ({"compare": lambda result, *, heads: result}, "compare() asks for 'heads', which params does not list"),
    ],
)
def test_names_that_are_not_there_are_errors(changes, said):
    with pytest.raises(DeclarationError) as caught:
        declare(**changes).check()

    assert f"workload 'attention': {said}" in str(caught.value)


def test_only_what_is_carried_can_be_donated():
    with pytest.raises(
        DeclarationError, match=r"attention\(\) donates 'x', which carry does not list.*carry has nothing"
    ):
        declare(donate=("x",))


def test_a_param_may_be_there_for_devices_or_config_alone():
    params = {**PARAMS, "devices": (1, 2), "wide": (False, True)}
    declared = declare(
        params=params, devices=lambda *, devices: devices, config=lambda *, wide: {"jax_enable_x64": wide}
    )
    case = {"seq": 128, "dtype": "float32", "devices": 2, "wide": True}

    declared.check()

    assert declared.needed_devices(case) == 2
    assert declared.settings(case) == {"jax_enable_x64": True}


def test_without_a_word_a_case_uses_one_device_and_sets_nothing():
    declared = declare()

    assert (declared.needed_devices({}), declared.settings({})) == (1, {})


def test_a_limit_may_ask_for_the_backend():
    declared = declare(limit=lambda *, backend: Skip("not there") if backend == "cpu" else None)
    declared.check()
    (item,) = declared.implementations

    assert [item.skip({}, backend) for backend in ("cpu", "gpu")] == [Skip("not there"), None]


def test_a_published_figure_stands_beside_the_cases_that_it_names():
    claims = (published(at={"seq": 128}), published(at={"seq": 256, "dtype": "float32"}), published())
    declared = declare(published=claims)

    assert declared.claims({"seq": 256, "dtype": "float32"}, "cpu") == claims[1:]
    assert declared.claims({"seq": 256, "dtype": "bfloat16"}, "cpu") == claims[2:]


def test_a_published_figure_may_stand_beside_the_cases_of_one_backend():
    claims = (published(at={"backend": "gpu"}), published(at={"seq": 128, "backend": "cpu"}))
    declared = declare(published=claims)

    declared.check()

    assert declared.claims({"seq": 128}, "cpu") == claims[1:]
    assert declared.claims({"seq": 128}, "gpu") == claims[:1]


def test_other_data_make_another_definition():
    made = [declare(data=data).definition() for data in (None, lambda: "digits", lambda: "noise")]

    assert len(set(made)) == 3


def test_a_quick_run_may_leave_out_a_workload():
    declared = declare(quick=False)

    assert [len(list(declared.cases(level, "cpu"))) for level in LEVELS] == [0, 2, 2]
