"""Options of XLA that a suite declares for an implementation."""

import pytest

from jaxmeter import DeclarationError, workload
from jaxmeter.harness.machine.platforms import BACKENDS
from jaxmeter.harness.plan.cases import plan_case

WIDE = {"xla_cpu_prefer_vector_width": 512}


def declare(**more):
    return workload(inputs=len, reference=len, **more)(lambda x: x + x)


def plan(declared):
    return plan_case("some", declared, {}, BACKENDS["cpu"])


def test_an_implementation_and_the_first_one_of_a_workload_have_options_of_their_own():
    made = declare(name="double", modes=("jit",), compiler_options={"xla_cpu_enable_fast_math": True})
    made.implementation(lambda x: 2 * x, name="wide", compiler_options=WIDE)
    made.implementation(lambda x: 2 * x, name="plain")

    options = [item.compiler_options for item in plan(made).variants]

    assert options == [{"xla_cpu_enable_fast_math": True}, WIDE, {}]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("xla_a=1", r"compiler_options of wide\(\) is 'xla_a=1'; it is a mapping"),
        ({"--xla_a": 1}, "names '--xla_a'; a name is as in XLA_FLAGS, without its dashes"),
        ({1: 1}, "names 1; a name is as in XLA_FLAGS"),
        ({"xla_a": None}, "xla_a is None; a value is a truth value, a number or a text"),
        ({"xla_a": (1, 2)}, r"xla_a is \(1, 2\); a value is"),
    ],
    ids=str,
)
def test_what_is_no_option_is_refused_where_it_is_declared(options, said):
    with pytest.raises(DeclarationError, match=said):
        declare(modes=("jit",)).implementation(lambda x: x, name="wide", compiler_options=options)


@pytest.mark.parametrize("mode", ["eager", "mixed"])
def test_a_mode_without_a_program_of_its_own_is_refused_with_the_modes_to_declare(mode):
    said = rf"wide\(\) has compiler_options, and mode '{mode}' has no one program.*declare modes=\('jit',\)"
    with pytest.raises(DeclarationError, match=said):
        declare().implementation(lambda x: x, name="wide", modes=("jit", mode), compiler_options=WIDE)
    with pytest.raises(DeclarationError, match=said):
        declare(implementation="wide", modes=("aot", mode), compiler_options=WIDE)


def test_a_stream_has_a_program_for_each_type_of_arguments_and_takes_options():
    made = declare(stream=True).implementation(lambda x: x, name="wide", modes=("jit",), compiler_options=WIDE)

    assert made is not None


def test_other_options_are_another_implementation_though_the_code_is_the_same():
    made = declare(modes=("jit",))
    for name, options in (("a", {}), ("b", {}), ("c", WIDE), ("d", {"xla_cpu_prefer_vector_width": 128})):
        made.implementation(lambda x: 2 * x, name=name, compiler_options=options)

    first, second, third, fourth = (item.source for item in plan(made).variants[1:])

    assert first == second
    assert len({first, third, fourth}) == 3


def test_a_text_is_recorded_like_a_flag_without_a_secret_and_home(monkeypatch):
    monkeypatch.setenv("HOME", "/home/somebody")
    options = {"xla_a": "/home/somebody/a", "xla_b_token": "abcdefgh", "xla_dump_to": "/tmp/mine", "xla_c": "x y"}
    made = declare(modes=("jit",), compiler_options=options)

    (variant,) = plan(made).variants

    assert variant.compiler_options == {"xla_a": "~/a", "xla_b_token": "***", "xla_dump_to": "***", "xla_c": "x y"}
