from functools import partial, wraps

import numpy as np
import pytest

from jaxmeter import (
    Answer,
    Caching,
    Cost,
    DeclarationError,
    Figure,
    Items,
    Needs,
    Peer,
    Published,
    Skip,
    State,
    Workload,
    levels,
    no_reference,
    workload,
)
from jaxmeter.harness.declare.fingerprint import fingerprint

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
    assert declared.variants == ("attention:eager", "attention:jit", "attention:aot")
    assert declared.baseline_variant == "attention:eager"
    assert declared(7) == 7
    assert declare(stream=True).variants == ("attention:eager", "attention:jit")
    assert declared.find_compile_budget("attention:jit", {"seq": 128, "dtype": "float32"}) is None


def test_further_implementations_and_peers_follow_the_first():
    declared = declare(peers={"numpy": lambda x: x}, modes=("jit",), implementation="plain")

    @declared.implementation
    def scan(x):
        """By steps."""

    @declared.implementation(name="loop", modes=("eager", "jit"))
    def with_a_name(x):
        """By a loop."""

    assert declared.variants == ("plain:jit", "numpy:native", "scan:jit", "loop:eager", "loop:jit")
    assert declared.find_variant("loop:jit") == (declared.implementations[3], "jit")
    assert [item.description for item in declared.implementations[2:]] == ["By steps.", "By a loop."]


# Names that do not fit


def test_an_implementations_param_that_does_not_exist_is_an_error_where_it_is_declared():
    declared = declare()

    with pytest.raises(DeclarationError, match=r"scan\(\) asks for 'heads', which params does not list"):

        @declared.implementation
        def scan(x, *, heads):
            """Not there."""


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


def test_a_baseline_may_be_attached_after_the_workload():
    declared = declare(baseline="scan:jit", modes=("jit",))
    declared.implementation(lambda x: x, name="scan")

    declared.check()

    assert declared.baseline_variant == "scan:jit"


# Params and their values


def test_a_limit_gives_the_reason_to_skip():
    declared = declare(limit=lambda seq: Skip("too long") if seq > 128 else None)
    (item,) = declared.implementations

    assert item.find_skip({"seq": 256, "dtype": "float32"}, "cpu") == Skip("too long")
    assert item.find_skip({"seq": 128, "dtype": "float32"}, "cpu") is None


def test_cases_are_every_combination_of_params():
    cases = declare(params={"n": (1, 2), "dtype": ["a", "b"]}).list_cases("quick", "cpu")

    assert [(case["n"], case["dtype"]) for case in cases] == [(1, "a"), (1, "b"), (2, "a"), (2, "b")]
    assert list(declare(params={}).list_cases("quick", "cpu")) == [{}]


# Identity


def test_a_definition_is_inputs_reference_and_cost_but_no_implementation():
    def cost(*, seq):
        return Cost(flops=seq)

    plain = declare(cost=cost)
    more = declare(cost=cost, implementation="first", peers={"numpy": len}, modes=("jit",), tolerance=0.1)

    assert plain.hash_definition() == more.hash_definition()
    assert plain.hash_definition() != declare(cost=lambda *, seq: Cost(flops=2 * seq)).hash_definition()
    assert plain.hash_definition() != declare(cost=cost, inputs=lambda key, *, seq: None).hash_definition()
    assert plain.hash_definition() != declare(cost=cost, reference=lambda x: -x).hash_definition()
    assert plain.hash_definition() != declare(cost=cost, reference=no_reference("random")).hash_definition()


def test_what_is_compared_is_part_of_a_definition():
    plain, first, last = (declare(compare=compare) for compare in (None, lambda x: x[0], lambda x: x[-1]))

    assert plain.hash_definition() == fingerprint(inputs, trusted, None)
    assert len({one.hash_definition() for one in (plain, first, last)}) == 3


# What a param may be, and who takes it


def test_a_param_that_nobody_takes_is_an_error():
    @workload(inputs=lambda key: key, reference=no_reference("none"), params={"scale": (1, 2)})
    def identity(x):
        return x

    with pytest.raises(DeclarationError, match="takes the param 'scale'"):
        identity.check()


# What is expected of the compiler


def test_a_workloads_compile_budget_is_for_jit_and_an_implementations_own_for_all_its_modes_but_aot():
    declared = declare(compiles=lambda *, seq: seq // 64)

    @declared.implementation(compiles=2)
    def by_hand(x):
        """With jits of its own."""

    budgets = [declared.find_compile_budget(name, {"seq": 128, "dtype": "float32"}) for name in declared.variants]
    assert declared.variants[::3] == ("attention:eager", "by_hand:eager")
    assert budgets == [None, 2, None, 2, 2, None]
    assert declared.find_compile_budget("attention:jit", {"seq": 256, "dtype": "float32"}) == 4


@pytest.mark.parametrize(
    ("declared", "changes"),
    [
        ({"seq": 300}, {"seq": 300}),
        (lambda *, seq: {"seq": 2 * seq + 44}, {"seq": 300}),
        ({"seq": 128}, {"seq": 128}),  # a value that the case has: the probe can say so
    ],
)
def test_something_new_is_given_by_params_or_a_function_of_them(declared, changes):
    workload = declare(caching=Caching(new_shape=declared))

    found = workload.find_changes(workload.declaration.caching.new_shape, {"seq": 128, "dtype": "float32"})

    assert found == changes


def test_what_a_function_names_as_new_must_be_a_param_too():
    workload = declare(caching=Caching(new_shape=lambda *, seq: {"heads": seq}))

    with pytest.raises(DeclarationError, match="to be tried as new names 'heads'"):
        workload.find_changes(workload.declaration.caching.new_shape, {"seq": 128, "dtype": "float32"})


def test_a_param_with_values_for_one_device_alone_has_a_first_value_too():
    declared = declare(params={"seq": levels(by_device={"gpu": (64, 128)}), "dtype": "float32"})

    assert declared.represents_workload({"seq": 64, "dtype": "float32"})


@pytest.mark.parametrize(
    ("declared", "stands"), [({}, [True, False]), ({"representative": {"seq": 256}}, [False, True])]
)
def test_one_case_stands_for_its_workload_the_first_values_unless_declared(declared, stands):
    made = declare(**declared)

    assert [made.represents_workload(params) for params in made.list_cases("quick", "cpu")] == stands


# State, places, processes


def published(**changes) -> Published:
    return Published(
        **{"source": "a book", "device": "a GPU", "timed": "a call", "figure": Figure("attention:jit", 1.0), **changes}
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"state": State(carry={"y": 0})}, "carry names the argument 'y', which attention() does not have; it has x"),
        ({"needs": Needs(host=("y",))}, "host names the argument 'y', which attention() does not have; it has x"),
        ({"needs": Needs(devices=lambda *, heads: heads)}, "devices() asks for 'heads', which params does not list"),
        (
            {"needs": Needs(config=lambda *, heads: {"jax_enable_x64": heads})},
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
        (
            {"answer": Answer("Is it?", "scan:jit")},
            "no variant 'scan:jit' to be the answer; variants are attention:eager, attention:jit, attention:aot",
        ),
        (
            {"answer": Answer("Is it?", "attention:jit", against="scan:jit")},
            "no variant 'scan:jit' to be the answer; variants are attention:eager, attention:jit, attention:aot",
        ),
        (
            {"answer": Answer("Is it?", "attention:jit", metric="speed")},
            "no metric 'speed' to answer with; metrics",
        ),
        ({"answer": Answer("Is it?", "attention:jit", metric="items_per_s")}, "answers with 'items_per_s' and has no"),
        ({"items": lambda *, seq: seq}, "it must be an Items, such as items=Items('tokens', lambda"),
        ({"items": Items("tokens/s", 7)}, "items are called 'tokens/s'; their name must begin with a letter"),
        ({"items": Items(7, "tokens")}, "items are called 7; their name must begin with a letter"),
        *(
            ({"items": Items("tokens", count)}, f"items= counts {count!r} tokens…must be an integer ≥ 1")
            for count in (0, -1, 2.0, True, "7", None)
        ),
        ({"answer": Answer("Is it?", "attention:jit", at={"heads": 1})}, "the answer names 'heads', which params does"),
        ({"published": (published(at={"heads": 1}),)}, "published at a book names 'heads', which params does not list"),
        ({"published": (published(at={"backend": "cuda"}),)}, "no backend 'cuda'"),
        (
            {"params": {**PARAMS, "seq": levels(quick=128, by_device={"gpu": 256, "cuda": 256})}},
            "by_device of the param 'seq' names 'cuda', which there is not; devices are cpu, gpu, tpu",
        ),
        *(
            (changes, f"{name} asks for 'heads', which params does not list; params has seq, dtype")
            for name, changes in (
                ("inputs()", {"inputs": lambda key, *, seq, heads: None}),
                ("cost()", {"cost": lambda *, heads: Cost(flops=heads)}),
                ("cost()", {"cost": lambda heads: Cost(flops=heads)}),
                ("items()", {"items": Items("tokens", lambda *, heads: heads)}),
                ("reference()", {"reference": lambda x, *, heads: x}),
                ("compare()", {"compare": lambda result, *, heads: result}),
                ("attention()'s limit", {"limit": lambda heads: None}),
                ("numpy()", {"peers": {"numpy": lambda x, *, heads: x}}),
                ("numpy()'s limit", {"peers": {"numpy": Peer(len, limit=lambda heads: None)}}),
                ("compiles()", {"compiles": lambda *, heads: heads}),
                ("new_shape()", {"caching": Caching(new_shape=lambda *, heads: {"seq": heads})}),
            )
        ),
        ({"params": {}}, "which params does not list; params has nothing"),
        ({"modes": ("eager", "jitted")}, "no mode 'jitted'; modes are eager, jit, aot"),
        (
            {"baseline": "scan:jit", "modes": ("jit",)},
            "no variant 'scan:jit' to be the baseline; variants are attention:jit",
        ),
        ({"stream": True, "modes": ("jit", "aot")}, "a stream cannot run in mode 'aot'…modes are eager, jit"),
        ({"caching": Caching(new_shape={"heads": 8})}, "new_shape names 'heads', which params does not list"),
        (
            {"params": {}, "inputs": lambda key: 1, "caching": Caching(new_shape={"seq": 8})},
            "new_shape names 'seq', which params does not list; params has nothing",
        ),
        ({"representative": {"heads": 8}}, "representative names 'heads', which params does not list; params has seq,"),
        ({"compiles": 1, "modes": ("eager",)}, "compiles= counts what its jit variants compile, and it has none"),
        ({"state": State(donate=("x",))}, "attention() donates 'x', which carry does not list…carry has nothing"),
        ({"level": "slow"}, "no level 'slow'; levels are quick, default, full"),
        *(
            ({"tolerance": value}, f"tolerance is {value!r}; it is a number, 0 or more")
            for value in (len, "1e-5", -1e-5, float("nan"))
        ),
        ({"measures": "compiling"}, "measures is 'compiling'; it must be one of execution, compilation"),
        *(({"queued": value}, f"queued is {value!r}; it must be an integer of 2 or more") for value in (1, True, 2.0)),
    ],
)
def test_what_cannot_be_declared_is_an_error(changes, said):
    with pytest.raises(DeclarationError, match=r"^workload 'attention': ") as caught:
        declare(**changes).check()

    assert [words for words in said.split("…") if words not in str(caught.value)] == []


def generates(x):
    yield x


async def awaits(x):
    return x


async def generates_late(x):
    yield x


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (generates, "a generator"),
        (partial(generates), "a generator"),
        (awaits, "a coroutine"),
        (generates_late, "an asynchronous generator"),
    ],
    ids=["a generator", "its partial", "a coroutine", "an asynchronous generator"],
)
def test_a_function_that_runs_nothing_until_it_is_read_is_refused_by_name(function, kind):
    as_workload = workload(inputs=len, reference=len, name="first")

    with pytest.raises(DeclarationError, match=rf"workload 'first': .*\(\) returns {kind}: nothing runs until"):
        as_workload(function)
    with pytest.raises(DeclarationError, match=rf"later\(\) returns {kind}"):
        declare().implementation(function, name="later")
    with pytest.raises(DeclarationError, match=rf"peer\(\) returns {kind}"):
        declare(peers={"peer": function})


def test_a_function_that_reads_the_generator_that_it_wraps_is_none():
    reads = wraps(generates)(lambda x: list(generates(x)))

    assert workload(inputs=len, reference=len)(reads)(3) == [3]


def test_an_implementations_tolerance_is_a_number_from_0_on_too():
    made = declare()

    with pytest.raises(DeclarationError, match="tolerance is -1; it is a number, 0 or more"):
        made.implementation(name="narrow", tolerance=-1)(made.function)


@pytest.mark.parametrize("value", [None, 0, 0.0, 1e-5, np.float32(1e-5)])
def test_any_number_from_0_on_may_be_a_tolerance(value):
    declare(tolerance=value).check()


def test_a_param_may_be_there_for_devices_or_config_alone():
    params = {**PARAMS, "devices": (1, 2), "wide": (False, True)}
    declared = declare(
        params=params,
        needs=Needs(devices=lambda *, devices: devices, config=lambda *, wide: {"jax_enable_x64": wide}),
    )
    case = {"seq": 128, "dtype": "float32", "devices": 2, "wide": True}

    declared.check()

    assert declared.count_devices(case) == 2
    assert declared.find_config(case) == {"jax_enable_x64": True}


def test_without_a_word_a_case_uses_one_device_and_sets_nothing():
    declared = declare()

    assert (declared.count_devices({}), declared.find_config({})) == (1, {})


@pytest.mark.parametrize(
    "count", [256, lambda *, seq: 2 * seq, lambda seq: np.int64(2 * seq)], ids=["number", "function", "NumPy's number"]
)
def test_items_are_counted_by_a_number_or_by_a_function_of_params(count):
    declared = declare(items=Items("tokens", count), answer=Answer("Is it?", "attention:jit", metric="items_per_s"))
    declared.check()

    counted = declared.count_items({"seq": 128, "dtype": "float32"})

    assert (counted, type(counted)) == (256, int)
    assert declare().count_items({}) is None


@pytest.mark.parametrize(
    "count",
    [lambda *, seq: seq - 128, lambda *, seq: -seq, lambda *, seq: seq / 2],
    ids=["zero", "negative", "no integer"],
)
def test_a_function_that_gives_no_number_of_items_is_refused_where_a_case_is_planned(count):
    declared = declare(items=Items("tokens", count))
    declared.check()

    with pytest.raises(DeclarationError, match=r"items= counts .* tokens with \{'seq': 128.*; .* integer ≥ 1"):
        declared.count_items({"seq": 128, "dtype": "float32"})


def test_a_limit_may_ask_for_the_backend():
    declared = declare(limit=lambda *, backend: Skip("not there") if backend == "cpu" else None)
    declared.check()
    (item,) = declared.implementations

    assert [item.find_skip({}, backend) for backend in ("cpu", "gpu")] == [Skip("not there"), None]


def test_a_published_figure_stands_beside_the_cases_and_the_backend_that_it_names():
    claims = (
        published(at={"seq": 128, "backend": "cpu"}),
        published(at={"backend": "gpu"}),
        published(at={"seq": 256, "dtype": "float32"}),
        published(),
    )
    declared = declare(published=claims)

    declared.check()

    assert declared.find_published({"seq": 256, "dtype": "float32"}, "cpu") == claims[2:]
    assert declared.find_published({"seq": 256, "dtype": "bfloat16"}, "cpu") == claims[3:]
    assert declared.find_published({"seq": 128}, "cpu") == (claims[0], claims[3])
    assert declared.find_published({"seq": 128}, "gpu") == (claims[1], claims[3])


def test_other_data_make_another_definition_and_items_do_not_so_that_older_runs_stay_comparable():
    made = [declare(data=data).hash_definition() for data in (None, lambda: "digits", lambda: "noise")]

    assert len(set(made)) == 3
    assert declare(items=Items("tokens", 7)).hash_definition() == made[0]


@pytest.mark.parametrize(("lowest", "counts"), [("quick", [2, 2, 2]), ("default", [0, 2, 2]), ("full", [0, 0, 2])])
def test_a_workload_has_cases_from_its_lowest_level_on(lowest, counts):
    declared = declare(level=lowest)

    assert [len(list(declared.list_cases(level, "cpu"))) for level in LEVELS] == counts
